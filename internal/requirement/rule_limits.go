package requirement

// Bounds on rules. The unit of cost is a step of evaluation, which takes about a
// tenth of a microsecond.
const (
	// maxRule bounds the bytes of a rule, and with it the work of the compiler.
	maxRule = 4096

	// maxRuleDepth bounds the recursion of the parser.
	maxRuleDepth = 64

	// maxEvaluationCost of a rule on one extension. A rule that looks at each of
	// a hundred properties costs some hundreds.
	maxEvaluationCost = 100_000

	// maxCost bounds what one [Checker] spends: some tenths of a second.
	maxCost = 2_000_000

	// costCompile is that of the shortest rule, costCompileByte of each byte.
	costCompile     = 2_000
	costCompileByte = 100

	// costEvaluation is what it takes to begin.
	costEvaluation = 20

	// jsonPerCost are the bytes of properties that are decoded in a step.
	jsonPerCost = 2

	// constantsPerCost that are looked at in a step.
	constantsPerCost = 8

	// bytesPerCost that are compared or copied in a step.
	bytesPerCost = 16

	// maxProperties bounds the bytes of the properties of one extension that
	// rules see. Those that do not fit are left out; they are manifests and the
	// like, which no rule looks at.
	maxProperties = 256 << 10
)
