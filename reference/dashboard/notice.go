package dashboard

import (
	"net/http"

	"github.com/invoicespec/brimline/internal/figure"
)

// noticeView is a page that says why there is nothing else to see.
type noticeView struct {
	status int
	user   string // signed in, if anybody is known to be
	Title  string
	Text   []string
	Again  string // label of the link back to the page
}

func crossOrigin() noticeView {
	return noticeView{status: http.StatusForbidden, Title: "Sent from another site", Text: []string{
		"This form did not come from the billing page, so nothing was done.",
	}, Again: "Go to billing"}
}

func tooLarge() noticeView {
	return noticeView{status: http.StatusRequestEntityTooLarge, Title: "Too much was sent", Text: []string{
		"That is longer than any API key.",
	}, Again: "Back to sign-in"}
}

func unreadable() noticeView {
	return noticeView{status: http.StatusBadRequest, Title: "The form did not arrive", Text: []string{
		"It was cut short, or is no form at all.",
	}, Again: "Back to sign-in"}
}

func tooMany(seconds int64) noticeView {
	return noticeView{status: http.StatusTooManyRequests, Title: "Too many attempts", Text: []string{
		"There were too many attempts to sign in from your network address.",
		"You can try again in " + figure.Count(seconds, "second") + ".",
	}, Again: "Back to sign-in"}
}

func away() noticeView {
	return noticeView{status: http.StatusServiceUnavailable, Title: "Not available right now", Text: []string{
		"Your billing details cannot be read at the moment. Nothing about your plan has changed.",
		"Please try again in a little while.",
	}, Again: "Try again"}
}

func unresolved(user string) noticeView {
	return noticeView{status: http.StatusServiceUnavailable, user: user, Title: "Your limits cannot be determined", Text: []string{
		"What your plan entitles you to is not readable at the moment. This is a fault on our side and no change of your plan. Rather than wrong values, none are shown.",
		"Until it is mended, API requests get the answer 503 RATE_LIMIT_CONFIGURATION_UNAVAILABLE and cost no operations. Try again later, and contact support if it persists.",
	}, Again: "Try again"}
}
