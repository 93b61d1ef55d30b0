package e2e

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// crowded starts the program's demo with 300 visitors, for a shop of 50.
func crowded(t *testing.T) (url string) {
	t.Helper()
	const nodes = 3
	port := freePorts(t, 2*nodes)
	ended := anteroom(t, "demo", "--nodes", strconv.Itoa(nodes), "--limit", "50", "--visitors", "300", "--over", "2s", "--stay", "10s",
		"--session", "1m", "--port", strconv.Itoa(port), "--admin-port", strconv.Itoa(port+nodes))
	url = "http://127.0.0.1:" + strconv.Itoa(port)
	answers(t, adminOf(t, url), ended)
	return url
}

// presses presses a button wherever it is by then, and says yes to what is asked: a room's
// state may change meanwhile, and with it what stands above.
func (p *person) presses(selector, title string) {
	p.t.Helper()
	p.do("press "+selector, chromedp.Evaluate[chromedp.Void](fmt.Sprintf("document.querySelector(%q).click()", selector)))
	p.until("the question", fmt.Sprintf("document.querySelector('dialog').open && document.querySelector('#ask-title').textContent === %q", title))
	p.do("say yes", chromedp.Evaluate[chromedp.Void]("document.querySelector('#ask-yes').click()"))
}

// 300 people come to a shop for 50. Its operator sees the line form, lowers the limit,
// holds, tells who waits why, releases, and sees the line drain.
func TestAnOperatorSteersACrowd(t *testing.T) {
	shop := crowded(t)
	p, waits := newPerson(t), newPerson(t)
	p.open(adminOf(t, shop) + "/#shop")
	inLine := `Number(document.querySelector(".figures .figure dd span").textContent)`
	p.until("a line of 150", inLine+" >= 150")
	waits.open(shop + "/")
	waits.sees("You are in line")
	p.until("figures that fit", `[...document.querySelectorAll(".figures .figure dd span")].every(f => f.scrollWidth <= f.clientWidth)`)
	p.until("the forecast to know no more than the estimate", `[...document.querySelectorAll(".figures .figure dd span")].some(f => f.textContent === "not known") === document.body.innerText.includes("How long visits last is not known yet")`)
	p.picture("the line forms")

	p.types("#limit", "20")
	p.presses("#limits button", "Change the limits")
	p.sees("Change the limits: In force")
	p.presses("#hold", "Hold shop")
	p.sees("shop: nobody is let in")
	waits.until("to note when something is told", `window.mark = new MutationObserver(() => window.told ??= Date.now()), mark.observe(said, {childList: true}), true`)
	p.types("#news", "The kettle is on.")
	p.presses("#tell button", "Tell them")
	sent := time.Now()
	waits.sees("The kettle is on.")
	if at, err := eval[int64](waits, "told"); err == nil {
		t.Logf("an open page told of it %v after it was sent", time.UnixMilli(at).Sub(sent).Round(time.Millisecond))
	}
	waits.picture("told")
	p.types("#limit", "300")
	p.sees("When people are called again, who joins now would wait")
	p.presses("#limits button", "Change the limits")
	p.sees("total_active_users: 20 → 300")
	p.sees("shop: nobody is let in") // though there is room
	p.picture("held")
	p.presses("#release", "Release shop")
	waits.sees("The new harvest is here")
	p.sees("shop: nobody waits")
	p.picture("drained")
	p.do("look at the hour", chromedp.Evaluate[chromedp.Void]("document.querySelector('.choose button:nth-of-type(3)').click()"))
	p.sees(fmt.Sprintf("%d joined, %d got in", 301, 301))
	p.picture("as it was")
}
