package activities

import (
	"testing"

	"github.com/ropewalk/ropewalk/tool/mcp/mcptest"
)

func TestMain(m *testing.M) { mcptest.Main(m) }
