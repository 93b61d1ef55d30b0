package origin_test

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/anteroom/anteroom/gateway/origin"
)

func Example() {
	passes, err := origin.New(origin.Config{
		Room: "shop",
		JWKS: "http://127.0.0.1:8080/_anteroom/.well-known/jwks.json",
	})
	if err != nil {
		log.Fatal(err)
	}
	site := http.NewServeMux()
	site.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		visitor, _ := origin.FromContext(r.Context())
		fmt.Fprintf(w, "welcome, in line since %v", visitor.JoinedAt)
	})
	site.HandleFunc("/checkout", func(w http.ResponseWriter, _ *http.Request) {
		origin.End(w) // the next in line may come
		fmt.Fprint(w, "thank you")
	})

	// Somebody comes past the waiting room.
	answer := httptest.NewRecorder()
	passes.Require(site).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/", nil))
	fmt.Print(answer.Code, " ", answer.Body)
	// Output:
	// 403 {"type":"urn:anteroom:problem:pass_missing","title":"Come through the waiting room","status":403,"code":"pass_missing"}
}
