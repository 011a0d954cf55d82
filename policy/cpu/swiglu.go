package cpu

// swiglu writes h = silu(g)·u for one row, silu(g) = g/(1+e^−g) (Shazeer 2020).
func swiglu[T float](h, g, u []T) {
	if useFast[T]() {
		fast.swiglu(as[float32](h), as[float32](g), as[float32](u))
		return
	}
	g, u = g[:len(h)], u[:len(h)]
	for i := range h {
		h[i] = g[i] / (1 + expT(-g[i])) * u[i]
	}
}

// swigluBack writes the gradients of swiglu at (g, u) given dh, and h itself, which the weight gradient of
// the next matrix needs: with σ = 1/(1+e^−g), dg = dh·u·σ·(1 + g·(1−σ)) and du = dh·g·σ.
func swigluBack[T float](dg, du, h, dh, g, u []T) {
	if useFast[T]() {
		fast.swigluBack(
			as[float32](dg), as[float32](du), as[float32](h), as[float32](dh), as[float32](g), as[float32](u),
		)
		return
	}
	dg, du, dh, g, u = dg[:len(h)], du[:len(h)], dh[:len(h)], g[:len(h)], u[:len(h)]
	for i := range h {
		sig := 1 / (1 + expT(-g[i]))
		silu := g[i] * sig
		h[i] = silu * u[i]
		dg[i] = dh[i] * u[i] * (sig + silu*(1-sig))
		du[i] = dh[i] * silu
	}
}

// swigluRows applies swiglu to rows of [gate | up], each f wide.
func swigluRows[T float](h, gu []T, f int) {
	for i := 0; i < len(h); i += f {
		swiglu(h[i:i+f], gu[2*i:2*i+f], gu[2*i+f:2*i+2*f])
	}
}

// swigluRowsBack is swigluBack over rows.
func swigluRowsBack[T float](dgu, h, dh, gu []T, f int) {
	for i := 0; i < len(h); i += f {
		swigluBack(dgu[2*i:2*i+f], dgu[2*i+f:2*i+2*f], h[i:i+f], dh[i:i+f], gu[2*i:2*i+f], gu[2*i+f:2*i+2*f])
	}
}
