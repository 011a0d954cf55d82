package cpu

import (
	"cmp"
	"slices"
)

// pool hands out regions of a batch's caches.
type pool struct {
	size int      // in tokens
	free []region // in order, no two of them adjacent
}

func newPool(tokens int) pool {
	return pool{size: tokens, free: []region{{0, tokens}}}
}

// allocate returns a region with room for n tokens: part of the smallest free one that is large enough.
func (p *pool) allocate(n int) (region, bool) {
	n = roundUp(n)
	best := -1
	for i, f := range p.free {
		if f.room >= n && (best < 0 || f.room < p.free[best].room) {
			best = i
		}
	}
	if best < 0 {
		return region{}, false
	}
	f := &p.free[best]
	got := region{f.base, n}
	if f.base, f.room = f.base+n, f.room-n; f.room == 0 {
		p.free = slices.Delete(p.free, best, best+1)
	}
	return got, true
}

// release takes a region back.
func (p *pool) release(r region) {
	i, _ := slices.BinarySearchFunc(p.free, r, func(a, b region) int { return cmp.Compare(a.base, b.base) })
	p.free = slices.Insert(p.free, i, r)
	if i+1 < len(p.free) && r.base+r.room == p.free[i+1].base {
		p.free[i].room += p.free[i+1].room
		p.free = slices.Delete(p.free, i+1, i+2)
	}
	if i > 0 && p.free[i-1].base+p.free[i-1].room == p.free[i].base {
		p.free[i-1].room += p.free[i].room
		p.free = slices.Delete(p.free, i, i+1)
	}
}
