// A client that calls koined with Go's net/rpc.
package main

import (
	"fmt"
	"log"
	"net/rpc"
	"os"
)

type Message struct{ Role, Content string }
type ChatArgs struct{ Messages []Message }
type ChatReply struct{ Content string }

func main() {
	client, err := rpc.Dial("unix", os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	var reply ChatReply
	args := ChatArgs{[]Message{{"user", os.Args[2]}}}
	if err := client.Call("RPCService.Chat", args, &reply); err != nil {
		log.Fatal(err)
	}
	fmt.Println(reply.Content)
}
