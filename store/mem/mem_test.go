package mem_test

import (
	"testing"

	"github.com/ropewalk/ropewalk/internal/testing/storetest"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/mem"
)

func TestConformance(t *testing.T) {
	storetest.Run(t, func(*testing.T) store.Store { return mem.New() })
}
