package invoice

import (
	"fmt"
	"strings"
)

// Currency is an ISO 4217 currency and the places of its minor unit.
type Currency struct {
	Code   string
	Places int32
}

// The active currencies of ISO 4217 by the places of their minor unit. Units of
// account and precious metals, in which nobody pays, are left out.
const (
	noPlaces    = "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX VND VUV XAF XOF XPF"
	twoPlaces   = "AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CNY COP CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL HTG HUF IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH USD UYU UZS VED VES WST XCD XCG YER ZAR ZMW ZWG"
	threePlaces = "BHD IQD JOD KWD LYD OMR TND"
)

// ParseCurrency reads a currency's three-letter code.
func ParseCurrency(code string) (Currency, error) {
	for _, group := range []struct {
		codes  string
		places int32
	}{{twoPlaces, 2}, {noPlaces, 0}, {threePlaces, 3}} {
		// A code has no space in it, so a match is a whole code.
		if len(code) == 3 && !strings.Contains(code, " ") && strings.Contains(group.codes, code) {
			return Currency{Code: code, Places: group.places}, nil
		}
	}
	return Currency{}, fmt.Errorf("%q is no ISO 4217 currency code", code)
}
