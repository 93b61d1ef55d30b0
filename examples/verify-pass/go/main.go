// A site behind a waiting room that checks the pass of every request:
//
//	go run ./examples/verify-pass/go http://127.0.0.1:8080/_anteroom/.well-known/jwks.json shop 9000
package main

import (
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/anteroom/anteroom/gateway/origin"
)

func main() {
	if len(os.Args) != 4 {
		log.Fatal("give the address of the keys, the room and a port")
	}
	passes, err := origin.New(origin.Config{JWKS: os.Args[1], Room: os.Args[2]})
	if err != nil {
		log.Fatal(err)
	}
	site := http.NewServeMux()
	site.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		visitor, _ := origin.FromContext(r.Context())
		fmt.Fprintf(w, "welcome %s, in line since %s\n", visitor.Visitor, visitor.JoinedAt.Format(time.TimeOnly))
	})
	site.HandleFunc("/done", func(w http.ResponseWriter, _ *http.Request) {
		origin.End(w) // the next in line may come
		fmt.Fprintln(w, "thank you")
	})
	listener, err := net.Listen("tcp", "127.0.0.1:"+os.Args[3])
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("listening on", listener.Addr())
	server := http.Server{Handler: passes.Require(site), ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(server.Serve(listener))
}
