package node

import (
	"io"
	"net"
	"testing"
	"time"
)

func listen(t *testing.T) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return listener
}

func TestTheEndOfOneDirectionLeavesTheOtherOpen(t *testing.T) {
	server, front := listen(t), listen(t)
	go forward(front, server.Addr().String())
	go func() {
		connection, err := server.Accept()
		if err != nil {
			return
		}
		request, _ := io.ReadAll(connection) // until the client has ended its direction
		_, _ = connection.Write(append([]byte("answer to "), request...))
		_ = connection.Close()
	}()
	client, err := net.Dial("tcp", front.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = client.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := client.Write([]byte("question")); err != nil {
		t.Fatal(err)
	}
	_ = client.(*net.TCPConn).CloseWrite()
	if answer, err := io.ReadAll(client); err != nil || string(answer) != "answer to question" {
		t.Fatalf("got %q, %v", answer, err)
	}
}
