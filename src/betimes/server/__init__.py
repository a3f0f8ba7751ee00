"""What happens? The brokers of `node` on the real clock. The only room with sockets."""
