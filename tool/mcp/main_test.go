package mcp_test

import (
	"testing"

	"github.com/ropewalk/ropewalk/internal/testing/mcptest"
)

func TestMain(m *testing.M) { mcptest.Main(m) }
