//go:build goexperiment.simd && amd64

package cpu

import "simd/archsimd"

// lane[i] permutes lane i into all lanes.
var lane = func() (l [8][8]uint32) {
	for i := range l {
		for j := range l[i] {
			l[i][j] = uint32(i)
		}
	}
	return l
}()

// attendV is attention of one query over n cached tokens: k begins at the head in the first block of keys, v at
// the head in the first row of values; kw is K; p holds the scores (n rounded up to whole blocks), qx the query
// spread over lanes.
func attendV(out, q, k, v, p, qx []float32, n, kw int, scale float32) {
	spreadLanes(qx, q, scale)
	dim := len(q)
	for t := 0; t < n; t += 8 {
		kb := k[t*kw:]
		scoresV(p[t:t+8], kb[:dim*8], qx)
	}
	m := maxOfV(p[:n])
	s := expSumV(p[:n], m)
	clear(p[n:])
	for d := 0; d < dim; d += 32 {
		if dim-d >= 32 {
			mixV(out[d:d+32], p, v[d:], n, kw, 1/s)
			continue
		}
		for ; d < dim; d += 8 {
			mixNarrowV(out[d:d+8], p, v[d:], n, kw, 1/s)
		}
	}
}

// spreadLanes writes each element of q·scale to eight lanes.
func spreadLanes(qx, q []float32, scale float32) {
	sv := spread(scale)
	for len(q) >= 8 {
		x := load(q).Mul(sv)
		for i := range lane {
			x.Permute(archsimd.LoadUint32x8(&lane[i])).StoreSlice(qx[8*i:])
		}
		q, qx = q[8:], qx[64:]
	}
	archsimd.ClearAVXUpperBits()
}

// scoresV writes the scores of eight tokens: four sums over the dimensions, so that they do not wait.
func scoresV(p, k, qx []float32) {
	qx = qx[:len(k)]
	var s0, s1, s2, s3 vec
	for len(k) >= 32 && len(qx) >= 32 {
		s0 = load(k).MulAdd(load(qx), s0)
		s1 = load(k[8:]).MulAdd(load(qx[8:]), s1)
		s2 = load(k[16:]).MulAdd(load(qx[16:]), s2)
		s3 = load(k[24:]).MulAdd(load(qx[24:]), s3)
		k, qx = k[32:], qx[32:]
	}
	s0.Add(s1).Add(s2.Add(s3)).StoreSlice(p)
	archsimd.ClearAVXUpperBits()
}

// mixV writes 32 dimensions of Σ p·v·inv.
func mixV(out, p, v []float32, n, kw int, inv float32) {
	iv := spread(inv)
	var s0, s1, s2, s3 vec
	for t := 0; t < n; t += 8 {
		pv := load(p[t:])
		for i := 0; i < 8 && t+i < n; i++ {
			x := pv.Permute(archsimd.LoadUint32x8(&lane[i]))
			row := v[(t+i)*kw:]
			row = row[:32]
			s0 = load(row).MulAdd(x, s0)
			s1 = load(row[8:]).MulAdd(x, s1)
			s2 = load(row[16:]).MulAdd(x, s2)
			s3 = load(row[24:]).MulAdd(x, s3)
		}
	}
	s0.Mul(iv).StoreSlice(out)
	s1.Mul(iv).StoreSlice(out[8:])
	s2.Mul(iv).StoreSlice(out[16:])
	s3.Mul(iv).StoreSlice(out[24:])
	archsimd.ClearAVXUpperBits()
}

// mixNarrowV is mixV for 8 dimensions.
func mixNarrowV(out, p, v []float32, n, kw int, inv float32) {
	iv := spread(inv)
	var s vec
	for t := 0; t < n; t += 8 {
		pv := load(p[t:])
		for i := 0; i < 8 && t+i < n; i++ {
			s = load(v[(t+i)*kw:]).MulAdd(pv.Permute(archsimd.LoadUint32x8(&lane[i])), s)
		}
	}
	s.Mul(iv).StoreSlice(out)
	archsimd.ClearAVXUpperBits()
}
