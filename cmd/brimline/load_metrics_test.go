package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/invoicespec/brimline/reference/server"
)

// TestLoadServesMetrics: while a run lasts and no longer, on this machine alone.
func TestLoadServesMetrics(t *testing.T) {
	site := openLoadSite(t, server.Config{Users: 5}, nil)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var errs transcript
	ended := make(chan int, 1)
	go func() {
		ended <- site.loadTo(ctx, t, strings.Replace(shortLoad, "2s", "10m", 1), io.Discard, &errs, "--metrics", ":0")
	}()
	where := regexp.MustCompile(`metrics: (http://127\.0\.0\.1:\d+/metrics)\n`)
	require.Eventually(t, func() bool { return where.MatchString(errs.String()) }, time.Minute, time.Millisecond)
	url := where.FindStringSubmatch(errs.String())[1]
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	page := func() string {
		resp, err := client.Get(url)
		require.NoError(t, err)
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return string(text)
	}
	admitted := regexp.MustCompile(`brimline_load_answers_total\{outcome="admitted",plan="free"\} [1-9]`)
	require.Eventually(t, func() bool { return admitted.MatchString(page()) }, time.Minute, 10*time.Millisecond)
	require.NotContains(t, page(), "free-0", "no user")
	stop()
	require.Contains(t, []int{exitHolds, exitCannotTell}, <-ended)
	_, err := client.Get(url)
	require.Error(t, err)
}

func TestMetricsAddresses(t *testing.T) {
	for text, want := range map[string]string{":9102": "127.0.0.1:9102", "0.0.0.0:9102": "0.0.0.0:9102", "[::1]:0": "[::1]:0"} {
		var a metricsAddr
		require.NoError(t, a.Set(text))
		require.Equal(t, want, a.String())
	}
	for _, text := range []string{"", "9102", "127.0.0.1", "127.0.0.1:"} {
		var a metricsAddr
		require.ErrorContains(t, a.Set(text), "accepted: a port such as :9102", text)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	site := openLoadSite(t, server.Config{Users: 5}, nil)
	code, _, errs := site.load(t.Context(), t, shortLoad, "--metrics", l.Addr().String())
	require.Equal(t, exitUsage, code)
	require.Contains(t, errs, "--metrics: listen tcp")
	require.NoFileExists(t, site.dir+"/run/run.json")
}
