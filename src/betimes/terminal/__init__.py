"""What the commands share: printing, progress, exit codes, options, files and signals.

Begin reading at `terminal.py`: results go to standard output, everything else to standard error. Options:
`broker_options.py`, `client_options.py`, `spark_options.py`. Input files: `files.py`, `server_settings.py`,
`resume_file.py`. `serving.py` has log, signals and addresses of servers. `fleet.py` runs a network
of brokers as processes of this machine, for `betimes network` and the demo.

May import `experiments` and everything below; imported by `reporting`, `control`, `demo` and `cli`. It
defines no command.
"""
