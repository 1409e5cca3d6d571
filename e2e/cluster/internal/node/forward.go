package node

import (
	"io"
	"log"
	"net"
)

// forward relays connections to an address in this process's network namespace. A socket stays
// in the namespace it was made in, so the listener may be on the machine's side.
func forward(listener net.Listener, target string) {
	for {
		client, err := listener.Accept()
		if err != nil {
			log.Printf("forwarding ends: %v", err)
			return
		}
		go relay(client, target)
	}
}

func relay(client net.Conn, target string) {
	defer func() { _ = client.Close() }()
	server, err := net.Dial("tcp", target)
	if err != nil {
		return // the client sees the connection close, as from a server that is not up yet
	}
	defer func() { _ = server.Close() }()
	upstream := make(chan struct{})
	go func() {
		pour(server, client)
		close(upstream)
	}()
	pour(client, server)
	<-upstream
}

// pour copies until the end of one direction and passes that end on.
func pour(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	if half, ok := to.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
}
