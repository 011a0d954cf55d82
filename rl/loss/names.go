package loss

// The names under which recipes, benchmarks and `methods` know the losses.

// Names lists the losses as recipes and reports spell them.
func Names() []string {
	return []string{
		PPOClip{}.Name(), CISPO{}.Name(), SAPO{}.Name(), GSPO{}.Name(), GSPOToken{}.Name(), GPG{}.Name(), GPPO{}.Name(), CEGPPO{}.Name(),
		AEPOClip{}.Name(), ClipCov{}.Name(), KLCov{}.Name(), SelfImitation{}.Name(), BehaviourCloning{}.Name(), ValueClip{}.Name(),
		KL{Estimator: K1}.Name(), KL{Estimator: AbsKL}.Name(), KL{Estimator: K2}.Name(), KL{Estimator: K3}.Name(), Entropy{}.Name(),
	}
}
