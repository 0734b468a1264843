// Package mutation names the bugs that the engine can be given on purpose, to see
// that the simulator finds each. It is not for use outside Egret.
//
//	if mutation.Is(mutation.ForgetEdge) && e%8 == 0 { ... }
//
// A hook stands in the engine next to the line that it breaks. In an ordinary build
// Is is the constant false, and nothing is left of the hook. With the build tag
// mutation at most one bug is on: the one that a test has set, or that the
// environment variable EGRET_MUTATION names:
//
//	EGRET_MUTATION=forget-edge go run -tags mutation ./cmd/egret chaos sim
package mutation

import "fmt"

// A Mutation is one bug. The zero value is none.
type Mutation uint8

// The bugs, by the part of the engine that has them.
const (
	_ Mutation = iota

	// Who is done: edges, reports and the ledger.

	DropAnchor
	ForgetEdge
	EdgeAtClose
	ReportBeforeExecute
	ReuseTreeNumber
	AckFailed
	FailBehindEntry
	ReportOfEarlierLife
	DeadlineTwice

	// What a death does.

	MissLost
	NoView
	ViewNotLearned
	ReportUnderNewView
	NoLostReport
	ReaddressParcel
	KeepTotal
	SilentSupervisor
	StaleSave

	// Replays and dead letters.

	ReplayTwice
	ForgetLateFail
	CountLosses
	DieTooEarly
	PassUnstored
	LetterUnheard
	LetterForgotten

	// Flow control.

	LoseLimit
	UnboundedLimit
	IgnoreLimit
	ParcelMustFit
	LimitOfAnyLife
	RetainKeepsCredit
	ExecuteBlocked
	TickBlocked
	Overtake

	// Time.

	NotQueued
	NoGrace
	NotHeld
	PendingStays

	// Sources and queues.

	CommitPastOpen
	CommitTooSoon
	LostPosition
	DrainForgotten
	AnswerTwice
	AckLost
	KeepUnanswered
	TakeTooMany

	// Bolts.

	CloseTwice
	FinishEarly
	EndEarly
	RetainAcks
	RetainBorrows
	FailHeldAcks
	CallLost
	CallsUnordered
	NoFlush
	NoDry

	// Calls that do not come back.

	ZombieSends
	BlameNeighbours
	Careless

	// Where tuples go.

	HashByProcess

	// Batches.

	CommitUnwritten
	WriteUnordered
	BeginUnjoined
	RoundUnawaited
	EpochKept
	FixLeftOut
	AnyAttempt
	FailAtOnce
	DeathsCount

	// What package trident and its stores do with what batches change.

	PrevLost
	CacheKept
	SecondReplaces
	AgainWritten
	MemoryKeepsUndone

	// What tasks, stores and the record do with batches.

	EpochUncompared
	GapIsRepeat
	UndoLeftOut
	FenceUncompared
	UpdateFromRow
	MarkerOvertakes
	WroteUnsynced
	StaleKeepsCredit
	JoinKeepsQueue
	AnyParcel
	BeginUnordered
	PositionsKept
	FirstMarkerCompletes
	SettledUnawaited
	TxidAlone
	AheadUnfixed
	AnyOlder

	// Several nodes.

	StaleReport
	SwitchUnrested
	StopUnsaved
	UnhaltedLife
	MovedKeepsEpoch
	ResetKeepsEpoch
	LateCommit
	SaveOnce
	MoveUntold
	LivesSaidOnce
	EarlyDropped
	ResetIgnored
	AckAhead

	end
)

// names has the name of each, for people and EGRET_MUTATION, and what it does.
var names = [end]struct{ name, doc string }{
	DropAnchor:          {"drop-anchor", "a tuple that is anchored to several messages is anchored to all but one"},
	ForgetEdge:          {"forget-edge", "one edge in eight is in its parcel and in no account"},
	EdgeAtClose:         {"edge-at-close", "R2: an edge is made when its parcel is closed, not when the tuple is put into it"},
	ReportBeforeExecute: {"report-before-execute", "the edge of a parcel is reported as consumed when the parcel is taken"},
	ReuseTreeNumber:     {"reuse-tree-number", "a replay travels under the number of its last tree"},
	AckFailed:           {"ack-failed", "a failed message is acked with its tree"},
	FailBehindEntry:     {"fail-behind-entry", "R6: a fail travels behind the entry that consumes its tuple's edge"},
	ReportOfEarlierLife: {"report-of-earlier-life", "R1: a report for the ledger of an earlier life goes to the present one"},
	DeadlineTwice:       {"deadline-twice", "an entry moves the deadline from where it was, not from now"},

	MissLost:           {"miss-lost", "the ledger is not told of a death that its task has heard of"},
	NoView:             {"no-view", "R3: an entry is believed though its sender did not know of a death"},
	ViewNotLearned:     {"view-not-learned", "R3: a ledger does not learn of deaths from the view of a report"},
	ReportUnderNewView: {"report-under-new-view", "R4: what waits to be reported when a task hears of a death goes out under the new view"},
	NoLostReport:       {"no-lost-report", "R4: trees with an edge to the dead that is in no report yet are not reported as lost"},
	ReaddressParcel:    {"readdress-parcel", "R5: a parcel that waits for a dead life goes to the next one"},
	KeepTotal:          {"keep-total", "R8: the total that was sent to a dead life counts for the next one"},
	SilentSupervisor:   {"silent-supervisor", "the supervisor tells nobody of the next life of a task"},
	StaleSave:          {"stale-save", "R12: a position that could not be saved takes the place of a later one"},

	ReplayTwice:     {"replay-twice", "a replay is emitted twice"},
	ForgetLateFail:  {"forget-late-fail", "R7: a panic counts for nothing if its tree had been given back"},
	CountLosses:     {"count-losses", "R7: losses count towards MaxReplays"},
	DieTooEarly:     {"die-too-early", "a message is dead one replay before it may be"},
	PassUnstored:    {"pass-unstored", "a dead message is settled before its letter is stored"},
	LetterUnheard:   {"letter-unheard", "a dead letter is not emitted to those who subscribe to it"},
	LetterForgotten: {"letter-forgotten", "the store is not told that a letter it had given was replayed"},

	LoseLimit:         {"lose-limit", "R8: a limit that was lost is never said again"},
	UnboundedLimit:    {"unbounded-limit", "a receiver lets everybody send without bound"},
	IgnoreLimit:       {"ignore-limit", "a sender sends whether there is room or not"},
	ParcelMustFit:     {"parcel-must-fit", "R8: a parcel is sent only if there is room for all of it"},
	LimitOfAnyLife:    {"limit-of-any-life", "R8: a limit that names other lives is taken"},
	RetainKeepsCredit: {"retain-keeps-credit", "R8: a retained tuple does not raise the limit"},
	ExecuteBlocked:    {"execute-blocked", "R8: a task without room goes on with its input"},
	TickBlocked:       {"tick-blocked", "R8: a task without room ticks"},
	Overtake:          {"overtake", "parcels that were kept for want of room leave the newest first"},

	NotQueued:    {"not-queued", "R9: nobody says that a tree is still queued"},
	NoGrace:      {"no-grace", "R9: a ledger that did not run for long times out what it has not looked at"},
	NotHeld:      {"not-held", "R9: nobody says that a tuple of a tree is held"},
	PendingStays: {"pending-stays", "R10: MaxPending stays though what is held waits for what it keeps out"},

	CommitPastOpen: {"commit-past-open", "a position is committed one batch further than all is done"},
	CommitTooSoon:  {"commit-too-soon", "R12: a source hears of a position before the store has it"},
	LostPosition:   {"lost-position", "a new life of a spout begins where the run began"},
	DrainForgotten: {"drain-forgotten", "a spout that is started again while the run drains reads on"},
	AnswerTwice:    {"answer-twice", "a queue's message that has its answer gets another one at the end of a life"},
	AckLost:        {"ack-lost", "a queue's message that was lost is acked"},
	KeepUnanswered: {"keep-unanswered", "what is open at the end of a life is not handed back to its queue"},
	TakeTooMany:    {"take-too-many", "a queue is asked for messages as if none were open"},

	CloseTwice:     {"close-twice", "Close is called twice"},
	FinishEarly:    {"finish-early", "Finish is called when the first of the senders has ended"},
	EndEarly:       {"end-early", "the end of input is passed on before the parcels that are kept"},
	RetainAcks:     {"retain-acks", "a tuple that was retained counts as done when Execute returns"},
	RetainBorrows:  {"retain-borrows", "a retained tuple stays in its parcel, which is used again"},
	FailHeldAcks:   {"fail-held-acks", "Fail of a retained tuple is taken for an Ack"},
	CallLost:       {"call-lost", "a call of Async that comes back while another one waits is forgotten"},
	CallsUnordered: {"calls-unordered", "AsyncInOrder emits what comes of a call as soon as it is back"},
	NoFlush:        {"no-flush", "Flush is never called"},
	NoDry:          {"no-dry", "a bolt does not pass on that nothing more comes for now"},

	ZombieSends:     {"zombie-sends", "what a replaced life emits is sent"},
	BlameNeighbours: {"blame-neighbours", "a message is dead when it was among the suspects of a hang"},
	Careless:        {"careless", "after a hang tuples are not executed one at a time"},

	HashByProcess: {"hash-by-process", "the owner of a key depends on the process"},

	CommitUnwritten: {"commit-unwritten", "T10: a batch is committed before all states have written it"},
	WriteUnordered:  {"write-unordered", "T10: a batch is written as soon as it is complete, and not when those before it are committed"},
	BeginUnjoined:   {"begin-unjoined", "T3: the first batch of a round begins before all have joined"},
	RoundUnawaited:  {"round-unawaited", "T2: a round begins while an entry is on its way to the record"},
	EpochKept:       {"epoch-kept", "T2: the epoch goes on after an entry of which nobody knows whether the record has it"},
	FixLeftOut:      {"fix-left-out", "T13: a batch of a transactional spout is written before the record has its ranges"},
	AnyAttempt:      {"any-attempt", "T3: an answer of another attempt is believed"},
	FailAtOnce:      {"fail-at-once", "T2: a batch that fails ends the round though it is not the first"},
	DeathsCount:     {"deaths-count", "T19: deaths count towards MaxReplays"},

	EpochUncompared:      {"epoch-uncompared", "T9: the record takes an entry of a coordinator that was replaced"},
	GapIsRepeat:          {"gap-is-repeat", "T16: a store takes a batch behind one that it has nothing of for one that it has"},
	PrevLost:             {"prev-lost", "T12: an opaque state writes a value without the one before it"},
	CacheKept:            {"cache-kept", "T12: values that a batch has read or written are still believed in the next round"},
	SecondReplaces:       {"second-replaces", "the second element of a key in a batch takes the place of what was made of the first"},
	AgainWritten:         {"again-written", "T13: a transactional state changes a value again by a batch that has changed it"},
	MemoryKeepsUndone:    {"memory-keeps-undone", "T12: a state in memory does not undo what was written of a batch that comes again"},
	UndoLeftOut:          {"undo-left-out", "T12: what was written of a batch that comes again is not undone"},
	FenceUncompared:      {"fence-uncompared", "T11: a store takes writes of an attempt that is over"},
	UpdateFromRow:        {"update-from-row", "T12: the second change of a key in a batch begins where the batch began"},
	MarkerOvertakes:      {"marker-overtakes", "T8: a marker leaves before parcels that are kept for want of room"},
	WroteUnsynced:        {"wrote-unsynced", "T10: a state says that it has written before that is durable"},
	StaleKeepsCredit:     {"stale-keeps-credit", "T8: what is dropped since its round is over does not raise the limit"},
	JoinKeepsQueue:       {"join-keeps-queue", "T3: what waits in a queue is executed in the next round"},
	AnyParcel:            {"any-parcel", "T3: a parcel of another round is taken"},
	BeginUnordered:       {"begin-unordered", "T5: a spout task begins batches as it hears of them"},
	PositionsKept:        {"positions-kept", "T14: a spout task goes on from where it was when a round begins"},
	FirstMarkerCompletes: {"first-marker-completes", "T6: a batch is complete when the first of its markers has come"},
	SettledUnawaited:     {"settled-unawaited", "T17: what reads a state does not wait until the batch before is committed"},
	TxidAlone:            {"txid-alone", "T15: a join compares the batch that a store has, and not its attempt"},
	AheadUnfixed:         {"ahead-unfixed", "T13: a store without values before may have a batch of which the record has no ranges"},
	AnyOlder:             {"any-older", "T11: a store takes a write on top of any older batch, also of one that the task has not left there"},

	StopUnsaved:     {"stop-unsaved", "a topology is stopped when its tasks have ended, though the log lacks positions of theirs"},
	StaleReport:     {"stale-report", "that a node's tasks have ended is believed whichever plan they have ended in"},
	SwitchUnrested:  {"switch-unrested", "the next plan is put in force before everything is at rest"},
	UnhaltedLife:    {"unhalted-life", "a life that begins while its run is halted emits"},
	MovedKeepsEpoch: {"moved-keeps-epoch", "a task that is moved keeps its epoch, so that two nodes have the same life"},
	ResetKeepsEpoch: {"reset-keeps-epoch", "tasks behind a link that was given up live on"},
	LateCommit:      {"late-commit", "R12: the log takes a position of an earlier life"},
	SaveOnce:        {"save-once", "positions that do not come back from the log are not asked for again"},
	MoveUntold:      {"move-untold", "R4: tasks are not told of others that have moved"},
	LivesSaidOnce:   {"lives-said-once", "lives on other nodes are not said again behind a new plan"},
	EarlyDropped:    {"early-dropped", "what is said by lives of a plan that is not known yet is dropped"},
	ResetIgnored:    {"reset-ignored", "R11: nobody hears that a link was given up"},
	AckAhead:        {"ack-ahead", "R11: a frame is acked before it has come"},
}

// String returns the name of m, as EGRET_MUTATION has it.
func (m Mutation) String() string {
	if m < end && names[m].name != "" {
		return names[m].name
	}
	return fmt.Sprintf("mutation %d", uint8(m))
}

// Doc says in one line what m does, after the rule of the protocol that it leaves
// out, if it is one.
func (m Mutation) Doc() string { return names[m].doc }

// Nodes reports whether m is one that takes several nodes.
func (m Mutation) Nodes() bool { return m >= StaleReport && m < end }

// Batches reports whether m is one of the coordinator of batches.
func (m Mutation) Batches() bool { return m >= CommitUnwritten && m < PrevLost }

// States reports whether m is one of package trident and its stores.
func (m Mutation) States() bool { return m >= PrevLost && m < EpochUncompared }

// Exact reports whether m is one of what tasks, stores and the record do with batches.
func (m Mutation) Exact() bool { return m >= EpochUncompared && m < StaleReport }

// All returns all mutations, in the order in which they are declared.
func All() (all []Mutation) {
	for m := Mutation(1); m < end; m++ {
		all = append(all, m)
	}
	return all
}
