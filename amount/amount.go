// Package amount writes numbers of things for people. It is not for use outside
// Egret.
//
//	amount.Of(1, "message")      1 message
//	amount.Of(21424, "message")  21,424 messages
//	amount.Digits(21424)         21,424
package amount

import "strconv"

// Of writes n of something, whose name has a plural with s.
func Of[N int | int32 | int64 | uint64](n N, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return Digits(n) + " " + what + "s"
}

// Digits writes n with a comma before each three digits.
func Digits[N int | int32 | int64 | uint64](n N) string {
	var s string
	if n < 0 {
		s = strconv.FormatInt(int64(n), 10)
	} else {
		s = strconv.FormatUint(uint64(n), 10)
	}
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
