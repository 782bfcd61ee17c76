package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/invoicespec/brimline/reference/account"
	"github.com/invoicespec/brimline/reference/clock"
	"github.com/invoicespec/brimline/reference/policy"
	"github.com/invoicespec/brimline/reference/server"
	"github.com/invoicespec/brimline/reference/store/postgres"
)

const adminHelp = `Admin is the operator's boundary on a server's PostgreSQL: users, keys, plans,
overrides. What it changes is seen by running servers at once.

The database and the secret that API keys are digested with are those of "brimline
serve"; both can stand in the environment, as BRIMLINE_DATABASE_URL and
BRIMLINE_KEY_SECRET_FILE. Keys are shown once, when they are made.

Exit code 2: what was asked makes no sense, nothing was changed. 3: the database
is out of reach.`

// adminFlags say which database is meant.
type adminFlags struct{ url, keySecret string }

func adminVerb(w world) *cobra.Command {
	var f adminFlags
	c := &cobra.Command{
		Use:   "admin",
		Short: "Manage users, keys, plans and overrides in a database",
		Long:  adminHelp,
		Example: `  brimline admin migrate
  brimline admin user create --plan free --keys 2
  brimline admin override set user-7 burst 40 --author ann --reason "launch week" --expires 2027-01-31T00:00:00Z
  brimline admin plan change user-7 pro`,
	}
	flags := c.PersistentFlags()
	flags.StringVar(&f.url, "database-url", w.env("BRIMLINE_DATABASE_URL"), "`URL` of the PostgreSQL [BRIMLINE_DATABASE_URL]")
	flags.Lookup("database-url").DefValue = "" // it may hold a password
	flags.StringVar(&f.keySecret, "key-secret-file", w.env("BRIMLINE_KEY_SECRET_FILE"), "`FILE` with the secret that API keys are digested with [BRIMLINE_KEY_SECRET_FILE]")
	c.AddCommand(adminMigrate(&f, w), adminUser(&f, w), adminKey(&f, w), adminPlan(&f, w), adminOverride(&f, w))
	return needsVerb(c)
}

// desk is an open database and whom to tell.
type desk struct {
	*postgres.Store
	clock clock.Clock
	out   io.Writer
}

// on does something with the database that the flags name.
func (f *adminFlags) on(ctx context.Context, w world, do func(context.Context, desk) error) error {
	if f.url == "" {
		return errors.New("admin needs --database-url")
	}
	secret, err := readKeySecret(f.keySecret)
	if err != nil {
		return err
	}
	digester, err := account.DigesterFrom(secret)
	if err != nil {
		return err
	}
	c := clock.NewReal()
	s, err := postgres.Open(ctx, postgres.Config{URL: f.url, Digester: digester, Clock: c, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return databaseError(err)
	}
	defer s.Close()
	return adminError(do(ctx, desk{s, c, w.stdout}))
}

// databaseError gives an error of opening a database its exit code.
func databaseError(err error) error {
	if errors.Is(err, postgres.ErrAway) {
		return exitWith(exitCannotTell, err)
	}
	return err
}

// adminError tells a request that makes no sense from a database that failed.
func adminError(err error) error {
	for _, known := range []error{account.ErrRefused, account.ErrUnknownUser, account.ErrUnknownPlan, account.ErrUnknownKey, account.ErrFull} {
		if errors.Is(err, known) {
			return err
		}
	}
	if err != nil {
		return exitWith(exitCannotTell, err)
	}
	return nil
}

// subverb is one command of admin with so many arguments.
func (f *adminFlags) subverb(w world, use, short string, do func(ctx context.Context, d desk, args []string) error) *cobra.Command {
	n := strings.Count(use, " ")
	return &cobra.Command{
		Use: use, Short: short, Args: cobra.ExactArgs(n),
		RunE: func(c *cobra.Command, args []string) error {
			return f.on(c.Context(), w, func(ctx context.Context, d desk) error { return do(ctx, d, args) })
		},
	}
}

// needsVerb refuses a group's name alone or with a verb that there is not: a
// script that means to revoke a key must not believe that it did.
func needsVerb(c *cobra.Command) *cobra.Command {
	c.RunE = func(c *cobra.Command, args []string) error {
		var names []string
		for _, v := range c.Commands() {
			names = append(names, v.Name())
		}
		return fmt.Errorf("%s: got %q; accepted: %s", c.CommandPath(), strings.Join(args, " "), strings.Join(names, ", "))
	}
	return c
}

func group(use, short string, verbs ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short}
	c.AddCommand(verbs...)
	return needsVerb(c)
}

func adminMigrate(f *adminFlags, w world) *cobra.Command {
	var plans string
	c := &cobra.Command{
		Use: "migrate", Short: "Bring the schema up to date and add plans that are missing", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			table := server.DefaultPlans()
			if plans != "" {
				var err error
				if table, err = server.ReadPlans(plans); err != nil {
					return err
				}
			}
			if f.url == "" {
				return errors.New("admin needs --database-url")
			}
			if _, err := readKeySecret(f.keySecret); err != nil { // before anything is changed
				return err
			}
			steps, err := postgres.Migrate(c.Context(), f.url)
			if err != nil {
				return databaseError(err)
			}
			fmt.Fprintf(w.stdout, "schema is up to date (%d steps)\n", steps)
			return f.on(c.Context(), w, func(ctx context.Context, d desk) error { return d.AddPlans(ctx, table) })
		},
	}
	c.Flags().StringVar(&plans, "plans", "", "add the plans of `FILE` (YAML; default: the contract's)")
	return c
}

func adminUser(f *adminFlags, w world) *cobra.Command {
	var plan string
	var keys int
	create := f.subverb(w, "create", "Create a user and show their keys, this once", func(ctx context.Context, d desk, _ []string) error {
		if keys < 0 {
			return fmt.Errorf("%w: --keys %d; accepted: 0 to %d", account.ErrRefused, keys, account.MaxKeys)
		}
		user, issued, err := d.CreateUser(ctx, plan, keys)
		if err != nil {
			return err
		}
		fmt.Fprintln(d.out, user)
		for _, k := range issued {
			fmt.Fprintln(d.out, k.Reveal())
		}
		return nil
	})
	create.Flags().StringVar(&plan, "plan", "free", "the user's `PLAN`")
	create.Flags().IntVar(&keys, "keys", 1, "`N`umber of keys")
	show := f.subverb(w, "show USER", "Show what a user is entitled to and has used", func(ctx context.Context, d desk, args []string) error {
		return d.show(ctx, args[0])
	})
	operations := f.subverb(w, "operations USER LEFT", "Set the operations a user has left in this period", func(ctx context.Context, d desk, args []string) error {
		left, err := strconv.ParseInt(args[1], 10, 32)
		if err != nil {
			return fmt.Errorf("%w: %q operations; accepted: a whole number from 0 to %d", account.ErrRefused, args[1], math.MaxInt32)
		}
		return d.SetOperations(ctx, args[0], left)
	})
	return group("user", "Users", create, show, operations)
}

// show prints a user's plan, entitlements and period.
func (d desk) show(ctx context.Context, user string) error {
	b, err := d.Billing(ctx, user)
	if err != nil {
		return err
	}
	now := d.clock.Now()
	t := tabwriter.NewWriter(d.out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "user\t%s\nplan\t%s\n", b.User, b.PlanAt(now))
	if s := b.Subscription; s.Scheduled != "" && now.Before(s.Boundary) {
		fmt.Fprintf(t, "next plan\t%s from %s\n", b.Plans[s.Scheduled].Name, stamp(s.Boundary))
	}
	e, err := policy.Resolve(b.Plans, b.Subscription, b.Overrides, now)
	if err != nil {
		fmt.Fprintf(t, "broken\t%v\n", err)
	} else {
		for _, dim := range policy.Dimensions() {
			from := "plan"
			if e.Negotiated[dim] {
				from = "negotiated"
			}
			fmt.Fprintf(t, "%s\t%d (%s)\n", dim, e.Allowance.Of(dim), from)
		}
	}
	fmt.Fprintf(t, "period\t%s to %s\noperations\t%d used, %d left\n", stamp(b.Period.Start), stamp(b.Period.End), b.Used, b.Left)
	return t.Flush()
}

func stamp(at time.Time) string {
	if at.IsZero() {
		return "-"
	}
	return at.UTC().Format(time.RFC3339)
}

func adminKey(f *adminFlags, w world) *cobra.Command {
	return group("key", "API keys",
		f.subverb(w, "create USER", "Make a key and show it, this once", func(ctx context.Context, d desk, args []string) error {
			k, err := d.AddKey(ctx, args[0])
			if err == nil {
				fmt.Fprintln(d.out, k.Reveal())
			}
			return err
		}),
		f.subverb(w, "list USER", "List keys by their names", func(ctx context.Context, d desk, args []string) error {
			keys, err := d.Keys(ctx, args[0])
			if err != nil {
				return err
			}
			t := tabwriter.NewWriter(d.out, 0, 0, 2, ' ', 0)
			fmt.Fprintln(t, "key\tbegins with\tmade\trevoked")
			for _, k := range keys {
				fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", k.ID, k.Prefix, stamp(k.Created), stamp(k.Revoked))
			}
			return t.Flush()
		}),
		f.subverb(w, "revoke USER KEY", "Revoke a key by its name", func(ctx context.Context, d desk, args []string) error {
			return d.RevokeKeyNamed(ctx, args[0], args[1])
		}))
}

func adminPlan(f *adminFlags, w world) *cobra.Command {
	var now bool
	change := f.subverb(w, "change USER PLAN", "Change the plan at the billing-period boundary", func(ctx context.Context, d desk, args []string) error {
		boundary, err := d.SchedulePlan(ctx, args[0], args[1])
		if err == nil && now {
			var p account.Period
			p, err = d.EndPeriod(ctx, args[0])
			boundary = p.Start
		}
		if err == nil {
			fmt.Fprintf(d.out, "%s is on %s from %s\n", args[0], args[1], stamp(boundary))
		}
		return err
	})
	change.Flags().BoolVar(&now, "end-period-now", false, "move the boundary itself: the billing period ends now")
	cancel := f.subverb(w, "cancel USER", "Cancel a change that has not come yet", func(ctx context.Context, d desk, args []string) error {
		return d.CancelPlan(ctx, args[0])
	})
	return group("plan", "Plan changes", change, cancel)
}

func adminOverride(f *adminFlags, w world) *cobra.Command {
	var by account.Note
	var expires string
	noted := func(c *cobra.Command) *cobra.Command {
		c.Flags().StringVar(&by.Author, "author", "", "`WHO` changes it, for the audit trail")
		c.Flags().StringVar(&by.Reason, "reason", "", "`WHY`, for the audit trail")
		return c
	}
	set := noted(f.subverb(w, "set USER DIMENSION VALUE", "Set an override; one there already is replaced and stays in the history", func(ctx context.Context, d desk, args []string) error {
		o := policy.Override{Dimension: policy.Dimension(args[1]), Value: args[2]}
		if expires != "" {
			at, err := time.Parse(time.RFC3339, expires)
			if err != nil {
				return fmt.Errorf("%w: --expires %q; accepted: a time such as 2027-01-31T00:00:00Z", account.ErrRefused, expires)
			}
			o.Expires = at
		}
		return d.SetOverride(ctx, args[0], o, by)
	}))
	set.Flags().StringVar(&expires, "expires", "", "first `INSTANT` at which it no longer holds (RFC 3339; default: never)")
	expire := noted(f.subverb(w, "expire USER DIMENSION", "End an override now", func(ctx context.Context, d desk, args []string) error {
		return d.EndOverride(ctx, args[0], policy.Dimension(args[1]), by)
	}))
	list := f.subverb(w, "list USER", "List overrides, those that have ended as well", func(ctx context.Context, d desk, args []string) error {
		history, err := d.Overrides(ctx, args[0])
		if err != nil {
			return err
		}
		t := tabwriter.NewWriter(d.out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "dimension\tvalue\tset\tby\twhy\texpires\tended\tby\twhy")
		for _, h := range history {
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", h.Dimension, h.Value, stamp(h.Set), h.By.Author, h.By.Reason,
				stamp(h.Expires), stamp(h.Ended), h.EndBy.Author, h.EndBy.Reason)
		}
		return t.Flush()
	})
	return group("override", "Overrides of one dimension for one user", set, expire, list)
}
