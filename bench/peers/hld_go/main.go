// The original's kind of daemon, as one writes it in Go: a goroutine for each connection, lines by
// bufio.Scanner, encoding/json, a switch over methods. Nothing is kept, and no agent is run.
//
//	peer_hld SOCKET
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
)

const maxMessage = 1024 * 1024

type request struct {
	JSONRPC string          `json:"jsonrpc"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params,omitempty"`
	ID      interface{}     `json:"id"`
}

type response struct {
	JSONRPC string      `json:"jsonrpc"`
	Result  interface{} `json:"result,omitempty"`
	Error   *rpcError   `json:"error,omitempty"`
	ID      interface{} `json:"id"`
}

type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

type health struct {
	Status  string `json:"status"`
	Version string `json:"version"`
}

func handle(line []byte) *response {
	var r request
	if err := json.Unmarshal(line, &r); err != nil {
		return &response{JSONRPC: "2.0", Error: &rpcError{-32700, "Parse error"}}
	}
	answer := &response{JSONRPC: "2.0", ID: r.ID}
	if r.JSONRPC != "2.0" {
		answer.Error = &rpcError{-32600, "Invalid request: must be JSON-RPC 2.0"}
		return answer
	}
	switch r.Method {
	case "health":
		answer.Result = &health{Status: "ok", Version: "0.1.0"}
	case "listSessions":
		answer.Result = map[string]interface{}{"sessions": []interface{}{}}
	default:
		answer.Error = &rpcError{-32601, "Method not found: " + r.Method}
	}
	return answer
}

func serve(conn net.Conn) {
	defer conn.Close()
	scanner := bufio.NewScanner(conn)
	scanner.Buffer(make([]byte, 0, 64*1024), maxMessage)
	for scanner.Scan() {
		if len(scanner.Bytes()) == 0 {
			continue
		}
		data, err := json.Marshal(handle(scanner.Bytes()))
		if err != nil {
			return
		}
		if _, err := conn.Write(append(data, '\n')); err != nil {
			return
		}
	}
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: peer_hld SOCKET")
		os.Exit(2)
	}
	listener, err := net.Listen("unix", os.Args[1])
	for err == nil {
		var conn net.Conn
		if conn, err = listener.Accept(); err == nil {
			go serve(conn)
		}
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
