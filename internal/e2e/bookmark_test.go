package e2e

import (
	"os/exec"
	"strings"
	"testing"
)

// A browser that has lost its cookies finds its place by a bookmark that it got
// before, again and again; and not once the place has gone on to another device.
func TestABookmarkFindsThePlaceAgain(t *testing.T) {
	shop, admin := branded(t, 8, 8)
	p := newPerson(t)
	p.open(shop + "/tea/gyokuro")
	p.reads("#place", "1")
	other := newPerson(t)
	other.open(shop + "/")
	other.reads("#place", "2")

	// An operator has something to say, and an open page shows it.
	const news = "The second door is open."
	other.until("to mark the page", "window.mark = true")
	if out, err := exec.Command(build(t), "rooms", "message", "shop", news, "--admin", admin).CombinedOutput(); err != nil {
		t.Fatalf("say something: %v\n%s", err, out)
	}
	other.until("the message", `!said.hidden && said.textContent.endsWith("`+news+`")`)
	other.reads("#status", news)
	other.stayed()

	tab := p.newTab()
	tab.open(shop + "/tea/gyokuro")
	tab.until("the form, and this tab to be all that there is", `(document.querySelector("form[action*=bookmark]").target = "", true)`)
	tab.click("details:has([action*=bookmark]) summary")
	tab.click("form[action*=bookmark] button")
	tab.sees("A link to your place")
	tab.picture("bookmark")
	tab.isAccessible("bookmark")
	link := tab.text(".link a")
	if !strings.Contains(link, "ticket=") {
		t.Errorf("the link is %s", link)
	}
	for _, who := range []string{"a private window", "another one"} {
		again := newPerson(t)
		again.open(link)
		again.sees("This link carries a place in line")
		again.click("form button")
		again.until(who+" to have the place", `location.pathname === "/tea/gyokuro" && place.textContent === "1"`)
	}

	p.until("the form, and this tab to be all that there is", `(document.querySelector("form[action*=transfer]").target = "", true)`)
	p.click("details:has([action*=transfer]) summary")
	p.click("form[action*=transfer] button")
	p.sees("Take your place to another device")
	phone := newPerson(t, onPhone())
	phone.open(p.text(".link a"))
	phone.sees("Wait on this device?")
	phone.click("form button")
	phone.reads("#place", "1")
	late := newPerson(t)
	late.open(link)
	late.sees("This link carries a place in line")
	late.click("form button")
	late.sees("Your place is on another device now")
}
