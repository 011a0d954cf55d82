package activities

import "time"

// LookAlways makes every turn look for a newer policy.
func (d *Deps) LookAlways() { d.lookEvery = time.Nanosecond }
