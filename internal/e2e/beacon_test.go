package e2e

import (
	"context"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// withoutPolicy stands for a site whose Content-Security-Policy has connect-src
// 'self': the shop's allows nothing, as it has no scripts.
func withoutPolicy() chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, page.SetBypassCSP, page.SetBypassCSPParams{Enabled: true})
		return err
	})
}

// What docs/api.md tells sites to put on their last page.
func TestAPageEndsTheVisitByABeacon(t *testing.T) {
	url := demo(t)
	guests(t, url, 4, 0)
	p := newPerson(t, withoutPolicy())
	p.open(url + "/")
	p.sees("The new harvest is here")
	next := guests(t, url, 0, 1)[0]
	p.until("the beacon to be on its way", `navigator.sendBeacon("/_anteroom/v1/rooms/shop/end")`)
	next.comesIn()
	p.reload()
	p.reads("#place", "1")
}
