package e2e

import (
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// atNode is the address of another node of the demo.
func atNode(t *testing.T, link string, n int) string {
	t.Helper()
	u, err := url.Parse(link)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		t.Fatal(err)
	}
	u.Host = u.Hostname() + ":" + strconv.Itoa(port+n)
	return u.String()
}

// showsLink has a link made in this tab, by the keyboard alone, and returns it.
func (p *person) showsLink() string {
	p.t.Helper()
	p.until("the form, the page to stay, and this tab to be all that there is", `document.readyState !== "loading" && (stop(), document.querySelector("form[action*=transfer]").target = "", true)`)
	p.do("find it without a mouse", chromedp.Evaluate[chromedp.Void](`document.querySelector("details:has([action*=transfer]) summary").focus()`),
		chromedp.KeyEvent("\r"), chromedp.KeyEvent("\t"), chromedp.KeyEvent("\r"))
	p.sees("Take your place to another device")
	return p.text(".link a")
}

// A place goes on to another device: by a link that is opened at another node, with
// scripts and without. Whoever comes first has it; the page of before says where it is.
func TestAPlaceGoesOnToAnotherDevice(t *testing.T) {
	shop := demo(t)
	guests(t, shop, 5, 0)
	for look, options := range map[string][]chromedp.Action[chromedp.Void]{"scripts": nil, "no scripts": {withoutScripts()}} {
		t.Run(look, func(t *testing.T) {
			waits := newPerson(t, options...)
			waits.open(shop + "/tea/gyokuro")
			waits.sees("You are in line")
			waits.until("a place", `+place.textContent > 0`)
			place := waits.text("#place")
			shows := waits.newTab()
			shows.open(shop + "/tea/gyokuro")
			link := shows.showsLink()
			shows.picture("link")
			shows.isAccessible("link")
			if !strings.HasSuffix(link, "?to=%2Ftea%2Fgyokuro") || len(link) > 80 {
				t.Errorf("the link is %s", link)
			}

			phone := newPerson(t, append(options, onPhone())...)
			phone.open(atNode(t, link, 1))
			phone.sees("Wait on this device?")
			phone.picture("asks")
			phone.isAccessible("asks")
			phone.do("set the browser up", options...)
			late := newPerson(t, options...)
			late.open(atNode(t, link, 2))
			late.sees("Wait on this device?")
			waits.until("opening it to change nothing", `+place.textContent > 0 && +place.textContent <= `+place)

			phone.click("form button")
			taken := time.Now()
			phone.until("the place, where the link leads", `location.pathname === "/tea/gyokuro" && +place.textContent > 0 && +place.textContent <= `+place)
			waits.sees("Your place is on another device now")
			t.Logf("%s: the page of before said so after %v", look, time.Since(taken).Round(10*time.Millisecond))
			waits.picture("moved")
			waits.isAccessible("moved")
			late.click("form button")
			late.sees("This link does not work any more")
			late.picture("over")
			late.isAccessible("over")
			phone.reload()
			phone.until("the place still", `+place.textContent > 0 && +place.textContent <= `+place) // nobody asks for the first one's any more
		})
	}
}
