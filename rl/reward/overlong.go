package reward

// Overlong responses.
//
//	R += min(−(len − (L_max − buffer))/buffer·factor, 0)
//
// Source: DAPO's soft overlong punishment. Responses that a limit cut off can also be masked out of the loss, as SPEAR
// does; that is a filter (rl/resample). Departure: beyond L_max the penalty keeps growing, as in the release; in the
// paper it stops at −1.

// SoftOverlong is DAPO's penalty of a response's length in tokens, at most 0; 0 < buffer.
func SoftOverlong(length, maxLength, buffer int, factor float64) float64 {
	excess := length - (maxLength - buffer)
	if excess <= 0 {
		return 0
	}
	return -float64(excess) / float64(buffer) * factor
}
