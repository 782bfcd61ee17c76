package steps

import (
	"context"
	"fmt"
	"html"
	"regexp"
	"strings"

	"github.com/invoicespec/brimline/conformance/contract"
	"github.com/invoicespec/brimline/conformance/target"
)

// pages are the sentences about the billing page.
func (s *Scenario) pages() []sentence {
	return []sentence{
		{when, `^their (rate|burst|cap) is set to a telling number by an override with a reason and an author$`, "a number that no plan has", needs{contract.NeedPolicy}, s.overrideTelling},
		{when, `^they look at their billing page$`, "signed in with their key", needs{contract.NeedPage}, s.lookAtPage},
		{then, `^it shows their rate, burst and cap$`, "the numbers in force", needs{contract.NeedPage}, s.pageShowsValues},
		{then, `^it calls none of them negotiated$`, "the page's word for it is not there", needs{contract.NeedPage}, func() error { return s.pageMarks(0) }},
		{then, `^it calls one of them negotiated$`, "the page's word for it is there once", needs{contract.NeedPage}, func() error { return s.pageMarks(1) }},
		{then, `^neither reason nor author is in it$`, "nowhere in the page's source", needs{contract.NeedPage}, s.pageKeepsQuiet},
	}
}

// telling is a number that no plan and no page has by chance.
func telling(d target.Dimension) int64 {
	return map[target.Dimension]int64{target.RequestsPerMinute: 883, target.Burst: 977, target.Concurrency: 769}[d]
}

func (s *Scenario) overrideTelling(ctx context.Context, which string) error {
	d := dimensionOf(which)
	s.begin()
	return asSetup(s.SetOverride(ctx, s.user().User, d, target.Override{Value: telling(d), Reason: ownReason, Author: ownAuthor}))
}

func (s *Scenario) lookAtPage(ctx context.Context) (err error) {
	s.page, err = s.Page(ctx, s.user().User)
	return asSetup(err)
}

var (
	unseen = regexp.MustCompile(`(?s)<(style|script|head)\b.*?</(style|script|head)>|<!--.*?-->`)
	tags   = regexp.MustCompile(`(?s)<[^>]*>`)
	digits = regexp.MustCompile(`(\d)[,.'\x{2019}\x{00a0}\x{2009}\x{202f} ](\d{3})\b`)
)

// text is what a reader sees of a page: no markup, and numbers without the
// separators of their thousands.
func text(page string) string {
	page = tags.ReplaceAllString(unseen.ReplaceAllString(page, " "), " ")
	page = strings.Join(strings.Fields(html.UnescapeString(page)), " ")
	for digits.MatchString(page) { // one match may begin where another ends
		page = digits.ReplaceAllString(page, "$1$2")
	}
	return page
}

func (s *Scenario) pageShowsValues() error {
	seen := text(s.page)
	for _, d := range target.Dimensions() {
		value := d.Of(s.user().Bucket.Allowance())
		if !regexp.MustCompile(fmt.Sprintf(`(^|\D)%d(\D|$)`, value)).MatchString(seen) {
			return s.broken(exchange{who: s.user()}, "billing page, "+string(d), fmt.Sprint(value), s.short(seen))
		}
	}
	return s.verdict()
}

func (s *Scenario) pageMarks(n int) error {
	seen := text(s.page)
	if got := strings.Count(seen, s.Negotiated()); got != n {
		return s.broken(exchange{who: s.user()}, "billing page, how often it says "+s.Negotiated(), fmt.Sprint(n), fmt.Sprint(got))
	}
	return s.verdict()
}

// pageKeepsQuiet looks into the whole source, not only at what is seen.
func (s *Scenario) pageKeepsQuiet() error {
	for what, secret := range map[string]string{"reason": ownReason, "author": ownAuthor} {
		if strings.Contains(s.page, secret) {
			return s.broken(exchange{who: s.user()}, "billing page, "+what, "absent", "present")
		}
	}
	return s.verdict()
}
