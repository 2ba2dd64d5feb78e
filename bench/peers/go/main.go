// A JSON-RPC server as Go's standard library makes it: net/rpc with the jsonrpc
// codec. Its wire is JSON-RPC 1.0, one value after another.
package main

import (
	"fmt"
	"net"
	"net/rpc"
	"net/rpc/jsonrpc"
	"os"
	"time"
)

type Bench struct{}

// Args ignores whatever members it is sent; the codec still reads them.
type Args struct{}

type Pong struct {
	Pong      bool   `json:"pong"`
	Timestamp string `json:"timestamp"`
}

func (Bench) Ping(_ *Args, reply *Pong) error {
	reply.Pong = true
	reply.Timestamp = time.Now().UTC().Format("2006-01-02T15:04:05.000Z")
	return nil
}

func serve(path string) error {
	if err := rpc.Register(Bench{}); err != nil {
		return err
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		go jsonrpc.ServeConn(conn)
	}
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: peer_go PATH")
		os.Exit(2)
	}
	fmt.Fprintln(os.Stderr, serve(os.Args[1]))
	os.Exit(1)
}
