package contract

import "strings"

// SettingsPrefix is what the key of every setting of the contract begins with.
const SettingsPrefix = "invoicespec.rate-limit."

// Setting is something that an operator configures.
type Setting struct {
	Key      string   // below [SettingsPrefix]
	Nonsense []string // values that no deployment can make sense of, as text
}

// The settings that scenarios speak of by name.
const (
	SettingReplicas           = "replicas"
	SettingStorage            = "storage"
	SettingAnonymousRate      = "anonymous.requests-per-minute"
	SettingAnonymousBurst     = "anonymous.burst"
	SettingAnonymousPlaces    = "anonymous.concurrency"
	SettingAnonymousTrusted   = "anonymous.trusted-proxies"
	settingHuge               = "99999999999999999999" // no machine's number
	settingAboveTokens        = "1000001"
	settingAboveConcurrency   = "100001"
	settingLongerThanAnything = "999999999h"
)

// Settings lists every setting of the contract.
func Settings() []Setting {
	number := func(key string, beyond ...string) Setting {
		return Setting{key, append([]string{"", "0", "-1", "1.5", "abc", settingHuge}, beyond...)}
	}
	return []Setting{
		number(SettingReplicas),
		// The second is a storage that the contract knows and nobody has an adapter for.
		{SettingStorage, []string{"", "redis", "nowhere"}},
		number("cache.maximum-size"),
		{"cache.idle-expiry", []string{"", "0s", "-15m", "abc", settingLongerThanAnything}},
		number(SettingAnonymousRate, settingAboveTokens),
		number(SettingAnonymousBurst, settingAboveTokens),
		number(SettingAnonymousPlaces, settingAboveConcurrency),
		{SettingAnonymousTrusted, []string{"abc", "256.1.1.1", "10.0.0.0/33", "10.0.0.0/-1"}},
		{"anonymous.client-header", []string{"", "Via", "X-Forwarded-For, Forwarded"}},
		number("anonymous.ipv6-prefix", "129"),
	}
}

// FindSetting returns the setting of a key below [SettingsPrefix].
func FindSetting(key string) (Setting, bool) {
	for _, s := range Settings() {
		if s.Key == key {
			return s, true
		}
	}
	return Setting{}, false
}

// Variable is the setting's name in the environment, such as
// INVOICESPEC_RATE_LIMIT_REPLICAS.
func (s Setting) Variable() string {
	return strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(SettingsPrefix + s.Key))
}
