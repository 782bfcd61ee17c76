package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/invoicespec/brimline/internal/settings"
	"github.com/invoicespec/brimline/internal/strictyaml"
	"github.com/invoicespec/brimline/reference/anonymous"
	"github.com/invoicespec/brimline/reference/clientip"
	"github.com/invoicespec/brimline/reference/invoice"
	"github.com/invoicespec/brimline/reference/limiter"
	"github.com/invoicespec/brimline/reference/policy"
	"github.com/invoicespec/brimline/reference/server"
	"github.com/invoicespec/brimline/reference/wiring"
)

// serveSettings is what an operator configures, in a file, in the environment or
// by flags. The names below invoicespec are the contract's own.
type serveSettings struct {
	InvoiceSpec struct {
		RateLimit struct {
			Replicas int64  `yaml:"replicas,omitempty" usage:"processes that share the limits" range:"1 1000"`
			Storage  string `yaml:"storage,omitempty" usage:"where buckets and permits are kept"`
			Cache    struct {
				MaximumSize int64         `yaml:"maximum-size,omitempty" usage:"most buckets kept" range:"1 10000000"`
				IdleExpiry  time.Duration `yaml:"idle-expiry,omitempty" usage:"how long an unused bucket is kept at least" range:"1s 24h"`
			} `yaml:"cache,omitempty"`
			Anonymous struct {
				RequestsPerMinute int64         `yaml:"requests-per-minute,omitempty" usage:"attempts without a good key that a client address has back per minute" range:"1 1000000"`
				Burst             int64         `yaml:"burst,omitempty" usage:"such attempts at once" range:"1 1000000"`
				Concurrency       int64         `yaml:"concurrency,omitempty" usage:"such attempts in flight" range:"1 100000"`
				TrustedProxies    []string      `yaml:"trusted-proxies,omitempty" usage:"addresses and prefixes whose client header is believed"`
				ClientHeader      string        `yaml:"client-header,omitempty" usage:"the one header that trusted proxies name the client in" one-of:"X-Forwarded-For Forwarded X-Real-IP"`
				IPv6Prefix        int64         `yaml:"ipv6-prefix,omitempty" usage:"bits of an IPv6 address that share a pool" range:"32 128"`
				LoggedAddress     string        `yaml:"logged-address,omitempty" usage:"what the API log keeps of the address of an attempt without a good key; prefix: a /24 or /64" one-of:"none prefix full"`
				KnownKeys         int64         `yaml:"known-keys,omitempty" usage:"most keys remembered as good, which need nothing of their address" range:"2 10000000"`
				KnownKeyExpiry    time.Duration `yaml:"known-key-expiry,omitempty" usage:"how long after its last use a key is remembered as good" range:"1s 24h"`
			} `yaml:"anonymous,omitempty"`
		} `yaml:"rate-limit,omitempty"`
	} `yaml:"invoicespec,omitempty"`
	Brimline struct {
		Listen         string        `yaml:"listen,omitempty" usage:"address of the API; port 0 takes a free one"`
		Metrics        string        `yaml:"metrics,omitempty" usage:"address of the page of metrics; empty: none"`
		AllowRemote    bool          `yaml:"allow-remote,omitempty" usage:"let other machines reach API and metrics; only the API can have TLS"`
		TLSCert        string        `yaml:"tls-cert,omitempty" usage:"a file with the API's certificate (PEM, its chain after it); read again when it changes"`
		TLSKey         string        `yaml:"tls-key,omitempty" usage:"a file with that certificate's private key (PEM)"`
		H2C            bool          `yaml:"h2c,omitempty" usage:"speak HTTP/2 without TLS as well, to clients that begin with it"`
		MaxConnections int64         `yaml:"max-connections,omitempty" usage:"most connections open at once, on each listener" range:"1 1000000"`
		DrainDelay     time.Duration `yaml:"drain-delay,omitempty" usage:"when stopping, how long /ready says 503 before connections are refused" range:"0s 10m"`
		DrainTimeout   time.Duration `yaml:"drain-timeout,omitempty" usage:"after that, how long requests in flight may take to end" range:"1s 1h"`
		Plans          string        `yaml:"plans,omitempty" usage:"a file with the plan table (YAML)"`
		APILog         string        `yaml:"api-log,omitempty" usage:"append the API log to this file, one JSON object a line"`
		DatabaseURL    string        `yaml:"database-url,omitempty" usage:"keep users, plans and the API log in this PostgreSQL" secret:"true"`
		Migrate        bool          `yaml:"migrate,omitempty" usage:"bring the database's schema up to date first"`
		KeySecret      string        `yaml:"key-secret-file,omitempty" usage:"a file with the secret that API keys are digested with"`
		Operator       string        `yaml:"operator-token-file,omitempty" usage:"a file with the token that opens /internal/billing"`
		Capacity       string        `yaml:"capacity-token-file,omitempty" usage:"a file with the token that opens /internal/capacity"`
		PolicyTTL      time.Duration `yaml:"policy-ttl,omitempty" usage:"how long a policy is served without asking the database" range:"100ms 10m"`
		Spool          string        `yaml:"api-log-spool,omitempty" usage:"directory where log entries wait for the database"`
		SpoolSize      int64         `yaml:"api-log-spool-size,omitempty" usage:"bytes of log entries that may wait" range:"1048576 1099511627776"`
		EngineWorkers  int64         `yaml:"engine-workers,omitempty" usage:"invoices that the engine works on at once; 0: as many as there are" range:"0 100000"`
		EngineTime     time.Duration `yaml:"engine-time,omitempty" usage:"how long each takes it; with engine-workers its capacity is known" range:"0s 1s"`
		LogRetention   time.Duration `yaml:"log-retention,omitempty" usage:"how long the database keeps log entries" range:"1h 87600h"`
	} `yaml:"brimline,omitempty"`
}

// defaultSettings are the contract's defaults and ours.
func defaultSettings() *serveSettings {
	var s serveSettings
	r := &s.InvoiceSpec.RateLimit
	r.Replicas, r.Storage = 1, "local"
	r.Cache.MaximumSize, r.Cache.IdleExpiry = 100_000, 15*time.Minute
	r.Anonymous.RequestsPerMinute, r.Anonymous.Burst, r.Anonymous.Concurrency = 30, 10, 5
	r.Anonymous.ClientHeader, r.Anonymous.IPv6Prefix = clientip.XForwardedFor, clientip.DefaultIPv6Prefix
	r.Anonymous.LoggedAddress = string(clientip.LogPrefix)
	r.Anonymous.KnownKeys, r.Anonymous.KnownKeyExpiry = anonymous.DefaultKnownKeys, anonymous.DefaultKnownFor
	b := &s.Brimline
	b.Listen = "127.0.0.1:8080"
	b.MaxConnections, b.DrainTimeout = server.DefaultConnections, wiring.DefaultBounds().Stopped
	b.PolicyTTL = 10 * time.Second
	b.Spool, b.SpoolSize, b.LogRetention = "brimline-spool", 256<<20, 90*24*time.Hour
	return &s
}

// minToken is the shortest token that opens an operator's route, in bytes.
const minToken = 16

// config is what the settings say of the server to start.
func (s *serveSettings) config(names *settings.Settings) (server.Config, error) {
	r, b := s.InvoiceSpec.RateLimit, s.Brimline
	cfg := server.Config{
		Listen: b.Listen, Metrics: b.Metrics, AllowRemote: b.AllowRemote, APILog: b.APILog,
		Replicas: r.Replicas, Storage: r.Storage,
		Limits: limiter.Config{MaximumSize: int(r.Cache.MaximumSize), IdleExpiry: r.Cache.IdleExpiry},
	}
	allowance, err := policy.NewAllowance(r.Anonymous.RequestsPerMinute, r.Anonymous.Burst, r.Anonymous.Concurrency)
	if err != nil {
		return cfg, err
	}
	cfg.Anonymous = anonymous.Config{
		Allowance: allowance, Pools: cfg.Limits, KnownKeys: int(r.Anonymous.KnownKeys), KnownFor: r.Anonymous.KnownKeyExpiry,
	}
	if cfg.Transport, err = s.transport(names); err != nil {
		return cfg, err
	}
	trusted, err := clientip.ParseTrusted(r.Anonymous.TrustedProxies)
	if refusal := (clientip.Refusal{}); errors.As(err, &refusal) {
		return cfg, names.Refuse(refusal.Key, refusal.Problem, refusal.Accepted)
	}
	cfg.Addresses = clientip.Config{
		Trusted: trusted, Header: r.Anonymous.ClientHeader,
		IPv6Prefix: int(r.Anonymous.IPv6Prefix), Logged: clientip.Precision(r.Anonymous.LoggedAddress),
	}
	if b.EngineWorkers > 0 {
		cfg.Engine = invoice.NewPaced(int(b.EngineWorkers), b.EngineTime)
	} else if b.EngineTime > 0 {
		return cfg, names.Refuse("brimline.engine-time", "given without engine-workers", "both, or neither")
	}
	if b.Plans != "" {
		if cfg.Plans, err = server.ReadPlans(b.Plans); err != nil {
			return cfg, err
		}
	}
	for _, token := range []struct {
		file string
		into *string
	}{{b.Operator, &cfg.OperatorToken}, {b.Capacity, &cfg.CapacityToken}} {
		if token.file != "" {
			secret, err := readSecret(token.file)
			if err == nil && len(secret) < minToken {
				err = fmt.Errorf("%s: a token of %d bytes; accepted: %d or more", token.file, len(secret), minToken)
			}
			if err != nil {
				return cfg, err
			}
			*token.into = string(secret)
		}
	}
	if b.DatabaseURL == "" {
		return cfg, nil
	}
	secret, err := readKeySecret(b.KeySecret)
	if err != nil {
		return cfg, err
	}
	cfg.SessionSecret = secret // the page derives keys of its own from it
	cfg.Database = &server.Database{
		URL: b.DatabaseURL, KeySecret: secret, Migrate: b.Migrate, TTL: b.PolicyTTL,
		Spool: b.Spool, SpoolSize: b.SpoolSize, Retention: b.LogRetention,
	}
	return cfg, nil
}

// addSettings gives a verb a flag for each setting: its key without the first
// part, so that invoicespec.rate-limit.replicas is --rate-limit.replicas.
func addSettings(c *cobra.Command, s *settings.Settings) {
	for _, x := range s.All() {
		v := settingFlag{text: x.Text()}
		f := c.Flags().VarPF(&v, flagName(x.Key), "", fmt.Sprintf("%s [%s]", x.Usage, x.Env))
		if x.Text() == "false" {
			f.NoOptDefVal = "true"
		}
	}
}

func flagName(key string) string { return key[strings.Index(key, ".")+1:] }

// loadSettings takes the settings from everywhere: a file, the environment, flags.
func loadSettings(c *cobra.Command, s *settings.Settings, file string, getenv func(string) (string, bool)) error {
	given := map[string]string{}
	c.Flags().Visit(func(f *pflag.Flag) {
		for _, x := range s.All() {
			if flagName(x.Key) == f.Name {
				given[x.Key] = f.Value.String()
			}
		}
	})
	var read func(any) (settings.Document, error)
	if file != "" {
		read = func(v any) (settings.Document, error) { return strictyaml.Read(file, v) }
	}
	return s.Load(read, getenv, given)
}

// settingFlag keeps a flag's text; what it means is read with all the others.
type settingFlag struct{ text string }

func (f *settingFlag) Set(text string) error { f.text = text; return nil }
func (f *settingFlag) String() string        { return f.text }
func (f *settingFlag) Type() string          { return "VALUE" }
