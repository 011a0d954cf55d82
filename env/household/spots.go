package household

import (
	"slices"
	"strconv"
	"strings"
)

// spots are places or locations: numbers in ascending order, each once. They are never changed in place.
type spots []int

func (s spots) has(spot int) bool { return slices.Contains(s, spot) }

func (s spots) with(spot int) spots {
	at, found := slices.BinarySearch(s, spot)
	if found {
		return s
	}
	return slices.Insert(slices.Clone(s), at, spot)
}

func (s spots) without(spot int) spots {
	at, found := slices.BinarySearch(s, spot)
	if !found {
		return s
	}
	return slices.Delete(slices.Clone(s), at, at+1)
}

// String writes the numbers as "@3+5".
func (s spots) String() string {
	words := make([]string, len(s))
	for i, spot := range s {
		words[i] = strconv.Itoa(spot)
	}
	return "@" + strings.Join(words, "+")
}

// readSpots reads what String writes.
func readSpots(text string) (s spots, ok bool) {
	text, ok = strings.CutPrefix(text, "@")
	if !ok || text == "" {
		return nil, ok
	}
	for word := range strings.SplitSeq(text, "+") {
		spot, err := strconv.Atoi(word)
		if err != nil || len(s) > 0 && spot <= s[len(s)-1] {
			return nil, false
		}
		s = append(s, spot)
	}
	return s, true
}
