package api

// FormatOpenAI is the format of imported files, and the name of its recipes' environment.
const FormatOpenAI = "openai"

// Kinds of failures: the types of application errors, and values of the search attribute FailureKind.
const (
	FailBadInput  = "bad_input"      // someone must change the request
	FailCorrupt   = "corrupt_record" // committed bytes do not match their digest
	FailRefused   = "refused"        // a stage cannot work on such input (e.g. null log-probabilities)
	FailMemory    = "out_of_memory"  // the engine's device has too little memory for the work
	FailNonFinite = "non_finite"     // a gradient or loss is NaN or infinite
	// FailElsewhere: the host no longer has the run's engine, nor room for it; any other host may take the work.
	FailElsewhere = "elsewhere"
	FailJudge     = "judge_away" // the recipe's judge takes no queries at the moment
	FailCode      = "user_code"  // the user's own Python does not load, or raised
	FailTimeout   = "timeout"    // a stage took longer than its time limit
	// FailUnconfirmed: the recipe names programs or secrets, and no command of the user has started the run.
	FailUnconfirmed = "unconfirmed"
	FailPanic       = "panic" // a stage's code panicked; the worker's log has the stack
	FailFull        = "disk_full"
	FailUnkept      = "lost_write" // the store lost what a stage had put, before it was committed
)
