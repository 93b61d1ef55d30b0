package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom/internal/proxies"
)

// endsSession sends a form, which the shop's policy allows: the answer, 204,
// leaves the page as it is.
const endsSession = `[document.body.appendChild(document.createElement("form"))].map(form => {
	form.method = "post"
	form.action = "/_anteroom/v1/rooms/shop/end"
	form.submit()
	return true
})[0]`

// A browser behind each of the proxies that there are examples for: somebody
// waits, is called, goes in, buys something and goes.
func TestSomebodyWaitsBehindAnotherProxy(t *testing.T) {
	for _, p := range proxies.All() {
		t.Run(strings.ReplaceAll(p.Name, " ", "-"), func(t *testing.T) {
			needBrowser(t)
			url := proxies.Start(t, p, 2*time.Minute).URL
			first := newPerson(t)
			first.open(url + "/")
			first.sees("The new harvest is here")
			first.click(`a[href="/tea/lapsang"]`)
			first.sees("campfire")
			first.click("form button")
			first.sees("Your basket")

			next := newPerson(t)
			next.open(url + "/tea/gyokuro")
			next.sees("You are in line")
			next.reads("#place", "1")
			first.click("form button")
			first.sees("Thank you")
			if !p.Origin {
				first.until("the page to end its session", endsSession)
			}
			next.sees("Gyokuro")
			next.until("the address to be the tea's", `location.pathname === "/tea/gyokuro"`)
			first.open(url + "/")
			first.sees("You are in line")
		})
	}
}
