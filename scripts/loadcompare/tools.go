package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"
)

// job is what a tool is to do.
type job struct {
	dir    string
	url    string
	rate   int // 0: as many as it can
	length time.Duration
}

// tool is a load generator.
type tool struct {
	name    string
	program string
	closed  bool // it cannot send by a schedule
	users   bool // it has users, and sends by a schedule alone
	command func(job) []string
	told    func(dir, output string) (p99 time.Duration, note string)
}

const connections = 50

func tools() []tool {
	post := []string{"-H", "Authorization: Bearer key", "-H", "Content-Type: application/json"}
	fortio := func(more ...string) func(job) []string {
		return func(j job) []string {
			rate := strconv.Itoa(j.rate)
			if j.rate == 0 {
				rate = "-1"
			}
			args := append([]string{"load", "-quiet", "-allow-initial-errors", "-qps", rate, "-t", j.length.String(), "-c", strconv.Itoa(connections), "-p", "99", "-r", "0.0001", "-json", "out.json", "-payload-file", "body.json"}, post...)
			return append(append(args, more...), j.url)
		}
	}
	return []tool{
		{name: "brimline load", program: "brimline", users: true, command: func(job) []string {
			return []string{"load", "load.yaml", "--target", "target.yaml", "--out", "run"}
		}, told: brimlineTold},
		{name: "vegeta", program: "vegeta", command: func(j job) []string {
			args := []string{"attack", "-targets", "targets.txt", "-duration", j.length.String(), "-output", "out.gob", "-rate", strconv.Itoa(j.rate)}
			if j.rate == 0 {
				args = append(args, "-max-workers", strconv.Itoa(connections))
			}
			return args
		}, told: vegetaTold},
		{name: "k6", program: "k6", command: func(job) []string {
			return []string{"run", "--quiet", "--no-usage-report", "--summary-export", "out.json", "k6.js"}
		}, told: k6Told},
		{name: "fortio -stdclient", program: "fortio", command: fortio("-stdclient"), told: fortioTold},
		{name: "fortio", program: "fortio", command: fortio(), told: fortioTold},
		{name: "hey", program: "hey", command: func(j job) []string {
			args := append([]string{"-z", j.length.String(), "-c", strconv.Itoa(connections), "-m", "POST", "-D", "body.json", "-T", "application/json"}, post[:2]...)
			if j.rate > 0 {
				args = append(args, "-q", fmt.Sprint(float64(j.rate)/connections))
			}
			return append(args, j.url)
		}, told: heyTold},
		{name: "wrk", program: "wrk", closed: true, command: func(j job) []string {
			return []string{"-t", "2", "-c", strconv.Itoa(connections), "-d", fmt.Sprintf("%.0fs", j.length.Seconds()), "--latency", "-s", "post.lua", j.url}
		}, told: wrkTold},
	}
}

func k6Script(p phase, url string, length time.Duration) string {
	how := fmt.Sprintf(`executor: 'constant-vus', vus: %d, duration: '%v'`, connections, length)
	if p.rate > 0 {
		how = fmt.Sprintf(`executor: 'constant-arrival-rate', rate: %d, timeUnit: '1s', duration: '%v', preAllocatedVUs: 300, maxVUs: 1000`, p.rate, length)
	}
	return `import http from 'k6/http';
http.setResponseCallback(http.expectedStatuses(200, 429));
export const options = { discardResponseBodies: true, summaryTrendStats: ['p(99)'], scenarios: { s: { ` + how + ` } } };
const params = { headers: { 'Authorization': 'Bearer key', 'Content-Type': 'application/json' } };
export default function () { http.post('` + url + `', '` + body + `', params); }
`
}

// read reads a JSON file that a tool left. What is missing is 0.
func read(dir, name string, into any) {
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err == nil {
		_ = json.Unmarshal(text, into)
	}
}

func brimlineTold(dir, _ string) (time.Duration, string) {
	var r struct {
		Plans []struct {
			Dropped     int64 `json:"dropped"`
			DroppedBusy int64 `json:"dropped_busy"`
			Latency     []struct {
				FromDue struct {
					P99US int64 `json:"p99_us"`
				} `json:"from_due"`
			} `json:"latency"`
		} `json:"plans"`
	}
	read(filepath.Join(dir, "run"), "run.json", &r)
	if len(r.Plans) == 0 || len(r.Plans[0].Latency) == 0 {
		return 0, " (no record)"
	}
	p := r.Plans[0]
	note := ""
	if p.Dropped > 0 {
		note = fmt.Sprintf(" (%d late and dropped, %d of them since all workers waited)", p.Dropped, p.DroppedBusy)
	}
	return time.Duration(p.Latency[0].FromDue.P99US) * time.Microsecond, note
}

func vegetaTold(dir, _ string) (time.Duration, string) {
	c := exec.Command("vegeta", "report", "-type", "json", "out.gob")
	c.Dir = dir
	text, err := c.Output()
	if err != nil {
		return 0, " (no report)"
	}
	var r struct {
		Latencies struct {
			P99 time.Duration `json:"99th"`
		} `json:"latencies"`
	}
	_ = json.Unmarshal(text, &r)
	return r.Latencies.P99, ""
}

func k6Told(dir, _ string) (time.Duration, string) {
	var r struct {
		Metrics struct {
			Duration map[string]float64 `json:"http_req_duration"`
			Dropped  map[string]float64 `json:"dropped_iterations"`
		} `json:"metrics"`
	}
	read(dir, "out.json", &r)
	note := ""
	if n := r.Metrics.Dropped["count"]; n > 0 {
		note = fmt.Sprintf(" (%.0f dropped)", n)
	}
	return time.Duration(r.Metrics.Duration["p(99)"] * float64(time.Millisecond)), note
}

func fortioTold(dir, _ string) (time.Duration, string) {
	var r struct {
		DurationHistogram struct {
			Percentiles []struct{ Value float64 }
		}
	}
	read(dir, "out.json", &r)
	if len(r.DurationHistogram.Percentiles) == 0 {
		return 0, " (no report)"
	}
	return time.Duration(r.DurationHistogram.Percentiles[0].Value * float64(time.Second)), ""
}

func heyTold(_, output string) (time.Duration, string) {
	return found(output, `99%+ in ([0-9.]+) secs`, "s")
}
func wrkTold(_, output string) (time.Duration, string) {
	return found(output, `(?m)^\s+99%\s+([0-9.]+(?:us|ms|s))$`, "")
}

// found is a time in a tool's output.
func found(output, pattern, unit string) (time.Duration, string) {
	m := regexp.MustCompile(pattern).FindStringSubmatch(output)
	if m == nil {
		return 0, " (not told)"
	}
	d, err := time.ParseDuration(m[1] + unit)
	if err != nil {
		return 0, " (not told)"
	}
	return d, ""
}
