package jinja

// A template is a list of statements; an expression gives a value. Each knows its line.
type (
	// A statement returns errBreak or errContinue if it leaves the body of a loop.
	statement interface {
		run(r *renderer, s *scope) (leaves error)
	}
	expression interface {
		value(r *renderer, s *scope) any
	}

	textNode   struct{ text string }
	outputNode struct {
		line int
		of   expression
	}
	ifNode struct {
		conditions []expression
		bodies     [][]statement
		otherwise  []statement
	}
	forNode struct {
		line            int
		names           []string
		over, condition expression
		body, otherwise []statement
	}
	setNode struct {
		line  int
		names []string
		// object and attribute are set for ns.attribute.
		object    string
		attribute string
		of        expression  // nil: the text of body
		body      []statement // of a block
	}
	macroNode struct {
		name     string
		names    []string
		defaults map[string]expression
		body     []statement
	}
	blockNode struct{ body []statement } // generation: its text as it is
	breakNode struct{ again bool }

	literal   struct{ is any }
	nameExpr  struct{ name string }
	listExpr  struct{ of []expression }
	dictExpr  struct{ keys, values []expression }
	attribute struct {
		line int
		of   expression
		name string
	}
	indexExpr struct {
		line     int
		of, with expression
	}
	sliceExpr struct {
		line           int
		of             expression
		from, to, step expression // nil if left out
	}
	callExpr struct {
		line int
		of   expression
		given
	}
	filterExpr struct {
		line int
		name string
		of   expression
		given
	}
	given struct { // what a call is given
		args  []expression
		names []string // of the named arguments, in order; "" is a mapping of further ones
		named []expression
	}
	testExpr struct {
		line int
		name string
		of   expression
		args []expression
	}
	spreadExpr struct{ of expression } // further arguments of a call
	unaryExpr  struct {
		line int
		op   string
		of   expression
	}
	binaryExpr struct {
		line        int
		op          string
		left, right expression
	}
	conditionExpr struct{ if_, then, otherwise expression } // otherwise may be nil
)
