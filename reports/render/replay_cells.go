package render

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/invoicespec/brimline/internal/figure"
	"github.com/invoicespec/brimline/reports/record"
)

// replayPart writes what allowances do to one plan's attempts.
func replayPart(b *strings.Builder, cells []record.Cell, needs []record.Needs, closed []record.ReportClosed) {
	if len(cells) > 0 {
		replayCells(b, cells)
	}
	replayNeeds(b, needs)
	replayClosed(b, closed)
}

// replayCells writes one row for each allowance, or grids where several rates
// meet several bursts.
func replayCells(b *strings.Builder, cells []record.Cell) {
	refused := cells[0].WithoutRefused != nil
	if rates, bursts := axes(cells); len(rates) > 1 && len(bursts) > 1 && len(rates)*len(bursts) == len(cells) {
		replayGrid(b, cells, len(bursts), "rejected / users affected", func(c record.Cell) string {
			return fmt.Sprintf("%s / %s", figure.Grouped(c.Rejected), figure.Grouped(int64(c.UsersAffected)))
		})
		if refused {
			replayGrid(b, cells, len(bursts), "the same without the attempts that were refused at the time", func(c record.Cell) string {
				return fmt.Sprintf("%s / %s", figure.Grouped(c.WithoutRefused.Rejected), figure.Grouped(int64(c.WithoutRefused.UsersAffected)))
			})
		}
		replayGrid(b, cells, len(bursts), "users OK: fewer than 0.1 % of their attempts rejected (lower bound at 95 %)", func(c record.Cell) string {
			return fmt.Sprintf("%.2f %% (%.2f)", 100*c.UsersOKShare, 100*c.UsersOK95[0])
		})
		return
	}
	replayRows(b, cells, refused)
}

// axes lists the different rates and bursts in their order.
func axes(cells []record.Cell) (rates, bursts []int64) {
	for _, c := range cells {
		if len(rates) == 0 || rates[len(rates)-1] != c.Rate {
			rates = append(rates, c.Rate)
		}
		if len(rates) == 1 && (len(bursts) == 0 || bursts[len(bursts)-1] != c.Burst) {
			bursts = append(bursts, c.Burst)
		}
	}
	return rates, bursts
}

func replayGrid(b *strings.Builder, cells []record.Cell, bursts int, title string, text func(record.Cell) string) {
	head := []string{"per minute"}
	for _, c := range cells[:bursts] {
		head = append(head, fmt.Sprintf("burst %d", c.Burst))
	}
	rows := [][]string{head}
	for i := 0; i < len(cells); i += bursts {
		row := []string{strconv.FormatInt(cells[i].Rate, 10)}
		for _, c := range cells[i : i+bursts] {
			row = append(row, text(c))
		}
		rows = append(rows, row)
	}
	fmt.Fprintf(b, "\n%s\n", title)
	writeColumns(b, rows)
}

func replayRows(b *strings.Builder, cells []record.Cell, refused bool) {
	asked := cells[0].Rate > 0
	concurrency := cells[0].Concurrency > 0 || !asked
	rows := make([][]string, len(cells)+1)
	column := func(name string, text func(record.Cell) string) {
		rows[0] = append(rows[0], name)
		for i, c := range cells {
			rows[i+1] = append(rows[i+1], text(c))
		}
	}
	if asked {
		column("per minute", func(c record.Cell) string { return figure.Grouped(c.Rate) })
		column("burst", func(c record.Cell) string { return figure.Grouped(c.Burst) })
	}
	if asked && concurrency {
		column("concurrency", func(c record.Cell) string { return figure.Grouped(c.Concurrency) })
	}
	if concurrency {
		column("429 rate", func(c record.Cell) string { return figure.Grouped(c.RejectedRate) })
		column("429 conc.", func(c record.Cell) string { return figure.Grouped(c.RejectedConcurrency) })
	} else {
		column("rejected", func(c record.Cell) string { return figure.Grouped(c.Rejected) })
	}
	column("share", func(c record.Cell) string { return fmt.Sprintf("%.2f %%", 100*c.RejectedShare) })
	column("users affected [95 %]", func(c record.Cell) string {
		return interval(c.UsersAffected, c.UsersAffectedShare, c.UsersAffected95)
	})
	column("users OK [95 %]", func(c record.Cell) string { return interval(c.UsersOK, c.UsersOKShare, c.UsersOK95) })
	column("top user", func(c record.Cell) string {
		if c.TopRank == 0 {
			return "–"
		}
		return fmt.Sprintf("%s (no. %d)", percent(c.TopShare), c.TopRank)
	})
	if refused {
		column("without past 429s", func(c record.Cell) string {
			return fmt.Sprintf("%s / %s", figure.Grouped(c.WithoutRefused.Rejected), figure.Grouped(int64(c.WithoutRefused.UsersAffected)))
		})
	}
	b.WriteString("\n")
	writeColumns(b, rows)
	b.WriteString("  OK: fewer than 0.1 % of a user's attempts rejected; top user: whose rejections are most,\n" +
		"  their share of all, and the user's place by attempts")
	if refused {
		b.WriteString("; without past 429s: rejected / users\n" +
			"  affected, had the attempts that were refused at the time not been made")
	}
	b.WriteString("\n")
}

func replayNeeds(b *strings.Builder, needs []record.Needs) {
	if len(needs) == 0 {
		return
	}
	rows := [][]string{{"per minute", "p50", "p90", "p95", "p99", "max"}}
	for _, n := range needs {
		row := []string{figure.Grouped(n.Rate)}
		for _, x := range []float64{n.P50, n.P90, n.P95, n.P99, n.Max} {
			row = append(row, strconv.FormatFloat(x, 'f', 2, 64))
		}
		rows = append(rows, row)
	}
	b.WriteString("\nburst that users need to meet no rate rejection\n")
	writeColumns(b, rows)
}

// replayPlans writes each plan under a line of its own.
func replayPlans(b *strings.Builder, plans []record.ReplayPlan) {
	for _, p := range plans {
		fmt.Fprintf(b, "\n%s", plainText(p.Plan))
		if a := p.Allowance; a != nil {
			fmt.Fprintf(b, ", today %s per minute, burst %s", figure.Grouped(a.RequestsPerMinute), figure.Grouped(a.Burst))
		}
		fmt.Fprintf(b, ": %s by %s", figure.Count(p.Attempts, "attempt"), figure.Count(int64(p.Users), "user"))
		if p.LeftOut > 0 {
			fmt.Fprintf(b, "; without what %s sent under an allowance of their own", figure.Count(int64(p.LeftOut), "user"))
		}
		b.WriteString("\n")
		if p.Attempts > 0 {
			replayPart(b, p.Cells, p.BurstNeeded, p.ClosedLoop)
		}
	}
}

// replayClosed writes what clients that obey Retry-After would meet.
func replayClosed(b *strings.Builder, closed []record.ReportClosed) {
	if len(closed) == 0 {
		return
	}
	concurrency := closed[0].Concurrency > 0
	head := []string{"per minute", "burst"}
	if concurrency {
		head = append(head, "concurrency")
	}
	rows := [][]string{append(head, "429s", "of sendings", "users", "delay p50", "p95", "p99", "max", "unserved")}
	for _, c := range closed {
		row := []string{figure.Grouped(c.Rate), figure.Grouped(c.Burst)}
		if concurrency {
			row = append(row, figure.Grouped(c.Concurrency))
		}
		row = append(row, figure.Grouped(c.Rejected), figure.Grouped(c.Sendings), figure.Grouped(int64(c.UsersAffected)))
		for _, x := range []float64{c.Delay.P50, c.Delay.P95, c.Delay.P99, c.Delay.Max} {
			row = append(row, length(x))
		}
		rows = append(rows, append(row, figure.Grouped(c.Unserved)))
	}
	b.WriteString("\nclients that obey Retry-After: a rejected request is sent again when it has run out, later ones wait behind it\n")
	writeColumns(b, rows)
}

func interval(n int, share float64, i [2]float64) string {
	return fmt.Sprintf("%s = %.2f %% [%.2f–%.2f]", figure.Grouped(int64(n)), 100*share, 100*i[0], 100*i[1])
}

// writeColumns writes rows with every column flush right.
func writeColumns(b *strings.Builder, rows [][]string) {
	var widths []int
	for _, row := range rows {
		for i, text := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(text))
		}
	}
	for _, row := range rows {
		for i, text := range row {
			b.WriteString(strings.Repeat(" ", 2+widths[i]-utf8.RuneCountInString(text)) + text)
		}
		b.WriteString("\n")
	}
}
