// Does MQTT.js get what it publishes? Run by test_mqttjs.py: node mqttjs_talks.js FOLDER URL VERSION
const [, , folder, url, version] = process.argv
const mqtt = require(require.resolve('mqtt', { paths: [folder] }))
const { readFileSync } = require('node:fs')

const fail = (reason) => { console.error(reason); process.exit(1) }
setTimeout(() => fail('took too long'), 20000)

const options = {
  protocolVersion: Number(version),
  reconnectPeriod: 0,
  ca: process.env.AUTHORITY ? readFileSync(process.env.AUTHORITY) : undefined
}

async function talk () {
  const client = await mqtt.connectAsync(url, options, false)
  const got = []
  const all = new Promise((resolve) => client.on('message', (topic, payload, packet) => {
    got.push(`${topic} ${packet.qos} ${payload.length}`)
    if (got.length === 4) resolve()
  }))
  for (const qos of [0, 1, 2]) {
    await client.subscribeAsync(`a/${qos}`, { qos })
    await client.publishAsync(`a/${qos}`, Buffer.alloc(100000 * qos + 1), { qos })
  }
  if (version === '5') {
    const wish = { userProperties: { filter: 'speed > 50' } }
    await client.subscribeAsync('cars', { qos: 1, properties: wish })
    for (const speed of ['40', '61']) {
      await client.publishAsync('cars', speed, { qos: 1, properties: { userProperties: { speed } } })
    }
  } else {
    await client.subscribeAsync('cars', { qos: 1 })
    await client.publishAsync('cars', '61', { qos: 1 })
  }
  await all
  await client.endAsync()
  console.log(got.sort().join('\n'))
  process.exit(0)
}

talk().catch(fail)
