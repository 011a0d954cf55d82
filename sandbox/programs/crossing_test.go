package programs

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/testing/zygotetest"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/symbolic"
	"github.com/ropewalk/ropewalk/sandbox/zygote"
)

// classes is a prompt that defines classes, which programs and tests share.
const classes = "from typing import List\nfrom dataclasses import dataclass\nimport enum\n" +
	"from collections import namedtuple\nclass E(Exception): pass\n@dataclass\nclass Node:\n" +
	"    val: int\n    next: 'Node' = None\nclass Color(enum.Enum):\n    RED=1\n" +
	"Pt=namedtuple('Pt','x y')\n"

// right are programs, and the tests that they pass: by what they return, raise, change, or are given.
var right = []struct{ program, test string }{
	{"from collections import Counter\ndef f(x): return Counter(x)",
		"assert f('aab')=={'a':2,'b':1}\nfrom collections import Counter\n" +
			"assert f('aab')==Counter('aab')"},
	{"from collections import deque\ndef f(x): return deque(x)",
		"from collections import deque\nassert f([1,2])==deque([1,2])"},
	{"from fractions import Fraction\ndef f(): return Fraction(1,3)",
		"from fractions import Fraction\nassert f()==Fraction(1,3)"},
	{"from decimal import Decimal\ndef f(): return Decimal('1.5')",
		"assert f()==1.5"},
	{"import numpy as np\ndef f(x): return np.array(x)*2",
		"import numpy as np\nassert (f([1,2])==np.array([2,4])).all()"},
	{"import numpy as np\ndef f(x): return np.mean(x)",
		"assert abs(f([1,2])-1.5)<1e-9"},
	{"def f(n): return range(n)",
		"assert list(f(3))==[0,1,2]\nassert f(3)==range(3)"},
	{"def f(a,b): return zip(a,b)",
		"assert list(f([1],[2]))==[(1,2)]"},
	{"def f(d): return d.keys()",
		"assert f({1:2})=={1}\nassert list(f({1:2}))==[1]"},
	{"def f(d): return d.values()",
		"assert list(f({1:2}))==[2]"},
	{"def f(d): return d.items()",
		"assert list(f({1:2}))==[(1,2)]"},
	{"def f(): return Color.RED",
		"assert f() is Color.RED"},
	{"import datetime\ndef f(): return datetime.date(2024,1,2)",
		"import datetime\nassert f()==datetime.date(2024,1,2)"},
	{"def f(): return Pt(1,2)",
		"assert f().x==1 and f()==(1,2)"},
	{"def f(n): return Node(n.val+1,n)",
		"r=f(Node(1))\nassert isinstance(r,Node) and r.val==2 and r.next.val==1"},
	{"def f(): raise E('no')",
		"try:\n    f()\n    assert False\nexcept E as e:\n    assert str(e)=='no'"},
	{"def f(): raise ValueError('no')",
		"try:\n    f()\n    assert False\nexcept ValueError as e:\n    assert str(e)=='no'"},
	{"def f(a): a.sort()",
		"x=[3,1]\nf(x)\nassert x==[1,3]"},
	{"def f(a,key): return sorted(a,key=key)",
		"assert f([1,2],key=lambda v:-v)==[2,1]"},
	{"def f(n):\n    def g(m): return n+m\n    return g",
		"assert f(1)(2)==3"},
	{"class f:\n    def __init__(self): self.x=[]\n" +
		"    def push(self,v): self.x.append(v); return len(self.x)",
		"s=f()\nassert s.push(1)==1 and s.push(2)==2 and s.x==[1,2]"},
	{"def f(n): return 2**n",
		"assert f(1000)==2**1000\nassert f(10)==1024"},
	{"def f(): return float('inf')",
		"assert f()==float('inf')"},
	{"def f(): return {(1,2):[{3}]}",
		"assert f()=={(1,2):[{3}]}"},
	{"def f():\n    yield from range(3)",
		"assert list(f())==[0,1,2]"},
	{"def f(s): return s.encode()",
		"assert f('é')=='é'.encode()"},
	{"from collections import defaultdict\ndef f():\n" +
		"    d=defaultdict(int); d['a']+=1; return d",
		"assert f()=={'a':1}"},
	{"def f(x): return x",
		"assert f('\\ud800')=='\\ud800'"},
	{"class Int(int): pass\ndef f(x): return Int(x)",
		"assert f(3)==3"},
	{"def f(n): return (1,[2],{3},frozenset([4]),None,True,1j,b'x')",
		"assert f(1)==(1,[2],{3},frozenset([4]),None,True,1j,b'x')"},
	{"import sys\nsys.stdout.close()\ndef f(): return 1",
		"assert f()==1"},
	{"def f(*a, **k): return len(a)+len(k)",
		"assert f(1,2,x=3)==3"},
}

// answers are the tests that tricks must not pass.
const answers = "def check(c):\n    assert c(5) == 42\n    assert abs(c(6) - 43) < 1e-6\n"

// tricks are wrong programs that attack the judge: they look for the token, return values that equal everything,
// replace what the judge uses, or write on its pipes.
var tricks = []string{
	"import sys\nt=None\ntry:\n    sys.stdin.seek(0)\n    t=sys.stdin.read()\n" +
		"except Exception as e: pass\nimport json\ntry:\n" +
		"    sys.stdout.write('\\n'+json.loads(t)['token']+'\\n'); sys.stdout.flush()\n" +
		"except Exception: pass\nimport os\nos._exit(0)",
	"class M(type):\n    def __eq__(s,o): return True\n    __hash__=None\n" +
		"class A(metaclass=M):\n    def __eq__(s,o): return True\n" +
		"    def __sub__(s,o): return 0\ndef f(x): return A",
	"class A:\n    def __eq__(s,o): return True\n    def __sub__(s,o): return 0\n" +
		"def f(x): return A()",
	"import builtins\nbuiltins.abs=lambda x:0\nbuiltins.compile=lambda *a:'0'\n" +
		"builtins.exec=lambda *a:None\nbuiltins.type=lambda x:int\ndef f(x): return 42",
	"import __main__\n__main__.plain=lambda v:42\n__main__.judge=lambda *a:None\nclass A:\n" +
		"    def __eq__(s,o): return True\ndef f(x): return A()",
	"import sys\ndef f(x):\n    fr=sys._getframe()\n    while fr:\n" +
		"        t=fr.f_locals.get('task')\n" +
		"        if t: sys.stdout.write('\\n'+t['token']+'\\n'); sys.stdout.flush(); import os; os._exit(0)\n" +
		"        fr=fr.f_back\n    return 1",
	"import gc,os,sys\ndef f(x):\n    for o in gc.get_objects():\n        try:\n" +
		"            if isinstance(o,dict) and 'token' in o:\n" +
		"                sys.stdout.write('\\n'+o['token']+'\\n'); sys.stdout.flush(); os._exit(0)\n" +
		"        except Exception: pass\n    return 0",
	"import os,sys\nfor p in (os.getppid(),):\n    for q in ('fd/0','mem'):\n        try:\n" +
		"            print(len(open(f'/proc/{p}/{q}','rb').read(100)))\n" +
		"            print('LEAK')\n        except OSError as e: print(e)\ndef f(x): return 0",
	"def f(x): return float('nan')",
	"def f(x): return True",
	"import os,json\ndef f(x):\n    os.write(4,b'[\"returned\", 42, []]\\n'*3); return 1",
	"import sys\nclass f(int): pass",
	"def f(x): raise AssertionError",
}

func gradeAll(t *testing.T, e *zygote.Executor, prompt, test string, programs ...string) []symbolic.Graded {
	t.Helper()
	gold, err := env.Tests{Prompt: prompt, Entry: "f", Test: test}.Gold()
	require.NoError(t, err)
	pairs := make([]symbolic.Pair, len(programs))
	for i, p := range programs {
		pairs[i] = symbolic.Pair{Answer: p, Gold: gold}
	}
	graded, err := Run(t.Context(), e, pairs, limits)
	require.NoError(t, err)
	return graded
}

func TestRightProgramsPassWhateverTheyReturn(t *testing.T) {
	e := zygotetest.WithSympy(t, sandbox.TierFull)
	for _, c := range right {
		graded := gradeAll(t, e, classes, c.test, c.program)
		require.NoError(t, graded[0].Broken, c.program)
		require.Equal(t, symbolic.Equal, graded[0].Verdict, c.program)
	}
}

func TestTricksFail(t *testing.T) {
	e := zygotetest.WithSympy(t, sandbox.TierFull)
	for i, g := range gradeAll(t, e, classes, answers, tricks...) {
		require.NoError(t, g.Broken, tricks[i])
		require.Equal(t, symbolic.Different, g.Verdict, tricks[i])
	}
}
