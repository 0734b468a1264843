package chaos

import "strings"

// A Kind is what is done in a fault.
type Kind string

// To actors. "For" and "by" are in Fault.Most and Fault.Factor.
const (
	Kill  Kind = "kill"  // ends a task, as a panic in it would, and its next lives too with Times
	Crash Kind = "crash" // kills it, and what is on its way from it is lost
	Stall Kind = "stall" // it does nothing for some time
	Slow  Kind = "slow"  // all it does takes so many times as long
	Jump  Kind = "jump"  // its clock jumps forward
)

// To what one actor says to another.
const (
	Hold    Kind = "hold"    // nothing arrives on a link for some time
	Lose    Kind = "lose"    // messages of a class
	Repeat  Kind = "repeat"  // they come twice
	Delay   Kind = "delay"   // they come late, and what follows on the link waits behind them
	Reorder Kind = "reorder" // they come late, and what follows overtakes them
)

// To the code of users: one in so many tuples or calls.
const (
	Refuse    Kind = "refuse"    // it returns an error, for some tuples so often that they are dead
	Reject    Kind = "reject"    // it rejects the tuple
	Panic     Kind = "panic"     // it panics, once with each such tuple, or on the Nth tuple from some time on
	Poison    Kind = "poison"    // it panics each time
	Hang      Kind = "hang"      // it does not return for some time
	Forget    Kind = "forget"    // it never lets go of a retained tuple
	Misroute  Kind = "misroute"  // a custom grouping chooses a task that is not there
	Pause     Kind = "pause"     // a source has nothing to read
	Break     Kind = "break"     // a source or queue errs
	Redeliver Kind = "redeliver" // a source gives out messages a second time
)

// To the run.
const (
	Drain Kind = "drain" // it is drained, within some time if that is given
	Stop  Kind = "stop"  // it is stopped
)

// What belongs to a kind, in the order in which it is written.
type grammar struct {
	once, lasts bool // may be said with at and every; with from and to or no time at all
	live        bool // also for live runs
	form        string
	help        string
}

// The letters of a form: W who, L from -> to, l the same or nothing, C class,
// R rate, r rate or nothing, D "for" time, d "within" time or nothing, F "by" a
// factor, J "by" a time, S a span of time, A "again" a number or nothing, I "in" a
// call or nothing, P a rate, or "on" a number or "in" a call if it is done once.
var grammars = map[Kind]grammar{
	Kill:      {true, false, true, "WA", "end a task; again N: and its next N lives, each when it is first heard of"},
	Crash:     {true, false, false, "W", "kill it; what is on its way from it is lost, on each link from some point on"},
	Stall:     {true, false, true, "WD", "it does nothing at all for so long"},
	Jump:      {true, false, false, "WJ", "its clock jumps forward: timers that come due meanwhile fire at once"},
	Slow:      {false, true, true, "WF", "all it does takes so many times as long"},
	Hold:      {true, false, false, "LD", "nothing arrives from one task at another for so long, and then in order"},
	Lose:      {false, true, false, "ClR", "messages of a class are lost"},
	Repeat:    {false, true, false, "ClR", "they come a second time, later"},
	Delay:     {false, true, false, "ClSr", "they come late, and what follows them waits behind"},
	Reorder:   {false, true, false, "ClSr", "they come late, and what follows overtakes them"},
	Refuse:    {false, true, false, "WR", "so many tuples are failed, some until they are dead"},
	Reject:    {false, true, false, "WR", "so many tuples are rejected"},
	Panic:     {true, true, true, "WP", "panic on the Nth tuple from then on, or in the next such call; or once with each of so many"},
	Poison:    {false, true, false, "WR", "panic with each of so many tuples, whenever it comes"},
	Hang:      {true, true, false, "WPD", "calls with so many tuples take up to so long; or the Nth, or the next such call, takes so long"},
	Forget:    {false, true, false, "WR", "so many retained tuples are never let go of"},
	Misroute:  {false, true, false, "WR", "a custom grouping sends so many tuples to a task that is not there"},
	Pause:     {false, true, true, "W", "a source has nothing to read"},
	Break:     {true, true, true, "WrI", "the next call of a source errs, or the next such call; or so many calls"},
	Redeliver: {false, true, false, "WR", "a source gives out so many messages again"},
	Drain:     {true, false, false, "d", "drain the run"},
	Stop:      {true, false, false, "", "stop the run"},
}

// kinds is the order in which people are told of them.
var kinds = []Kind{
	Kill, Crash, Stall, Jump, Slow, Hold, Lose, Repeat, Delay, Reorder,
	Refuse, Reject, Panic, Poison, Hang, Forget, Misroute, Pause, Break, Redeliver, Drain, Stop,
}

// Kinds returns all kinds of faults, in an order for people.
func Kinds() []Kind { return append([]Kind(nil), kinds...) }

// Live reports whether it can be done to a running topology.
func (k Kind) Live() bool { return grammars[k].live }

// Help says in a line what a kind does.
func (k Kind) Help() string { return grammars[k].help }

var formWords = map[rune]string{
	'W': "WHO", 'L': "WHO -> WHO", 'l': "[WHO -> WHO]", 'C': "CLASS", 'R': "4%", 'r': "[4%]", 'D': "for 2s",
	'd': "[within 2s]", 'F': "by 4", 'J': "by 2s", 'S': "0..400ms", 'A': "[again 3]", 'P': "on 100 | in tick | 4%", 'I': "[in open]",
}

// Usage is how a fault of this kind is written, without when.
func (k Kind) Usage() string {
	parts := []string{string(k)}
	for _, c := range grammars[k].form {
		parts = append(parts, formWords[c])
	}
	return strings.Join(parts, " ")
}

// A Class is a kind of message between actors, or something like one.
type Class string

const (
	Parcel      Class = "parcel"       // tuples
	Report      Class = "report"       // what is done, failed or lost, to a ledger
	StillQueued Class = "still-queued" // what waits in a queue, to a ledger
	Held        Class = "held"         // what is retained, to a ledger
	Lost        Class = "lost"         // a report of losses without anything else
	Limit       Class = "limit"        // how much may be sent
	Ask         Class = "ask"          // for a limit
	Peers       Class = "peers"        // who has died and who is there
	End         Class = "end"          // of input
	Dry         Class = "dry"          // nothing more just now
	Verdict     Class = "verdict"      // what became of a message, as its own task takes it in
	Tick        Class = "tick"         // a timer of a bolt
	Timer       Class = "timer"        // any other timer
	Control     Class = "control"      // between a task and the supervisor
	Save        Class = "save"         // a call of the store of positions and dead letters
)

var classes = []Class{Parcel, Report, StillQueued, Held, Lost, Limit, Ask, Peers, End, Dry, Verdict, Tick, Timer, Control, Save}

// Classes returns all classes.
func Classes() []Class { return append([]Class(nil), classes...) }

// A Call is one of user code.
type Call string

const (
	InPrepare Call = "prepare" // of a bolt, as are the next ones
	InTick    Call = "tick"
	InFinish  Call = "finish"
	InOpen    Call = "open" // of a source or queue, as are the next ones
	InNext    Call = "next"
	InCommit  Call = "commit"
	InAck     Call = "ack"
	InFail    Call = "fail"
)

var calls = []Call{InPrepare, InTick, InFinish, InOpen, InNext, InCommit, InAck, InFail}

// Calls returns all calls.
func Calls() []Call { return append([]Call(nil), calls...) }
