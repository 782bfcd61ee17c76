package metrics_test

import (
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/loadgen/metrics"
	"github.com/invoicespec/brimline/reports/record"
)

type source []record.RunPlan

func (s source) Snapshot() []record.RunPlan { return s }

func plans() source {
	q := record.Quantiles{Count: 5, SumUS: 10_000, MinUS: 1000, P50US: 2000, P90US: 3000, P95US: 3000, P99US: 4000, P999US: 4000, MaxUS: 4000}
	return source{
		{
			Plan: "free", Users: 2, UsersAffected: 1, Slots: record.Slots{Planned: 20, Offered: 12, Sent: 8, Dropped: 3, DroppedBusy: 1, HeldOff: 1},
			Answers:    record.Answers{Admitted: 5, RejectedRate: 3},
			RateJudged: record.Judged{Undue: 2, Undecided: 1}, Missing: 4,
			Latency: []record.RunLatency{
				{Outcome: record.OutcomeAdmitted, FromDue: q, FromSend: q}, {Outcome: record.OutcomeRejectedRate, FromDue: record.Quantiles{Count: 3}, FromSend: record.Quantiles{Count: 3}},
			},
		},
		{Plan: "a \"plan\"\n", Users: 1},
	}
}

func page(t *testing.T) string {
	t.Helper()
	w := httptest.NewRecorder()
	metrics.Handler(plans()).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	require.Equal(t, 200, w.Code)
	return w.Body.String()
}

func TestPage(t *testing.T) {
	text := page(t)
	for _, line := range []string{
		`brimline_load_users{plan="free"} 2`, `brimline_load_users_affected{plan="free"} 1`, `brimline_load_requests_planned{plan="free"} 20`,
		`brimline_load_requests_due_total{plan="free"} 12`, `brimline_load_requests_sent_total{plan="free"} 8`,
		`brimline_load_requests_dropped_total{plan="free"} 3`, `brimline_load_requests_dropped_busy_total{plan="free"} 1`,
		`brimline_load_requests_held_off_total{plan="free"} 1`, `brimline_load_rejections_undue_total{plan="free"} 2`,
		`brimline_load_rejections_undecided_total{plan="free"} 1`, `brimline_load_rejections_missing_total{plan="free"} 4`,
		`brimline_load_answers_total{outcome="admitted",plan="free"} 5`, `brimline_load_answers_total{outcome="rejected_rate",plan="free"} 3`,
		`brimline_load_answers_total{outcome="transport_error",plan="free"} 0`,
		`brimline_load_latency_seconds{outcome="admitted",plan="free",quantile="0.99"} 0.004`,
		`brimline_load_latency_seconds_sum{outcome="admitted",plan="free"} 0.01`,
		`brimline_load_response_seconds_count{outcome="admitted",plan="free"} 5`,
		`brimline_load_users{plan="a \"plan\"\n"} 1`,
	} {
		require.Contains(t, text, line+"\n")
	}
}

// TestLabelsAreFew: no user's name can become one.
func TestLabelsAreFew(t *testing.T) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(page(t)))
	require.NoError(t, err)
	require.NotEmpty(t, families)
	for name, f := range families {
		for _, m := range f.Metric {
			for _, l := range m.Label {
				require.Contains(t, []string{"plan", "outcome"}, l.GetName(), name)
			}
		}
	}
}

// TestPromtoolFindsNothing asks Prometheus' own tool.
func TestPromtoolFindsNothing(t *testing.T) {
	program, err := exec.LookPath("promtool")
	require.NoError(t, err, "this test needs promtool; install it and run it again, on Debian: apt-get update && apt-get install -y --no-install-recommends prometheus")
	check := exec.CommandContext(t.Context(), program, "check", "metrics")
	check.Stdin = strings.NewReader(page(t))
	out, err := check.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Empty(t, string(out))
}
