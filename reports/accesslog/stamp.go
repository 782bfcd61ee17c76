package accesslog

import (
	"bytes"
	"time"
)

// stamps reads "12/May/2024:00:00:17 +0000". A day and its zone are worked out
// once and kept, and so is the whole of the latest stamp, since entries of one
// second stand together.
type stamps struct {
	last    []byte
	seconds int64
	minute  int
	second  int
	offset  int32 // of the zone, in seconds

	day  []byte // "12/May/2024"
	zone []byte // "+0000"
	base int64  // seconds since 1970 at which that day began in that zone
}

const stampLen = len("12/May/2024:00:00:17 +0000")

// looksLikeStamp tells a stamp, be it a broken one, from other text in brackets.
func looksLikeStamp(b []byte) bool {
	return len(b) > 12 && b[2] == '/' && b[6] == '/' && b[11] == ':'
}

// read reads a stamp: seconds since 1970, minute and second as written, and the
// zone. A zone that is no signed hours and minutes makes the stamp invalid.
func (s *stamps) read(b []byte) (ok bool) {
	if bytes.Equal(b, s.last) {
		return len(b) > 0
	}
	if len(b) != stampLen || b[14] != ':' || b[17] != ':' || b[20] != ' ' {
		return false
	}
	hour, minute, second := pair(b[12:]), pair(b[15:]), pair(b[18:])
	if uint(hour) > 23 || uint(minute) > 59 || uint(second) > 60 { // 60: a leap second
		return false
	}
	if !bytes.Equal(b[:11], s.day) || !bytes.Equal(b[21:], s.zone) {
		base, offset, ok := midnight(b[:11], b[21:])
		if !ok {
			return false
		}
		s.offset = offset
		s.day, s.zone, s.base = append(s.day[:0], b[:11]...), append(s.zone[:0], b[21:]...), base
	}
	s.last = append(s.last[:0], b...)
	s.seconds, s.minute, s.second = s.base+int64(hour*3600+minute*60+second), minute, second
	return true
}

// midnight is when a day began in a zone, in seconds since 1970, and how far that
// zone is from UTC.
func midnight(day, zone []byte) (at int64, east int32, ok bool) {
	date, err := time.Parse("02/Jan/2006", string(day))
	if err != nil || date.Year() < 1970 {
		return 0, 0, false
	}
	hours, minutes := pair(zone[1:]), pair(zone[3:])
	if uint(hours) > 14 || uint(minutes) > 59 {
		return 0, 0, false
	}
	offset := int64(hours*3600 + minutes*60)
	switch zone[0] {
	case '+':
		return date.Unix() - offset, int32(offset), true
	case '-':
		return date.Unix() + offset, int32(-offset), true
	}
	return 0, 0, false
}

// pair reads two decimal digits, or returns -1.
func pair(b []byte) int {
	tens, ones := b[0]-'0', b[1]-'0'
	if tens > 9 || ones > 9 {
		return -1
	}
	return int(tens)*10 + int(ones)
}
