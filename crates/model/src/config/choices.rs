//! What the parameters of a machine can be that take words.

use crate::choices;

choices! {
    /// The kind of core.
    pub enum CoreModel {
        /// An out-of-order window.
        Window = "window",
        /// In order, with a store buffer.
        InOrder = "inorder",
    }

    /// Where a store of a window core waits for a fence or commit before it.
    pub enum FencedStores {
        /// In the store queue, while what follows dispatches.
        Queue = "queue",
        /// At dispatch, with all that follows.
        Dispatch = "dispatch",
    }

    /// How many stores and flushes of a window core are on their way at a time.
    pub enum StoresInFlight {
        /// A store asks for its line when it dispatches, and flushes overlap.
        Many = "many",
        /// Each leaves when the one before it is answered.
        One = "one",
    }

    /// Whether something is so.
    pub enum Switch {
        /// It is not.
        No = "no",
        /// It is.
        Yes = "yes",
    }

    /// Under which designs translation takes time.
    pub enum Walks {
        /// Those that translate.
        Designs = "designs",
        /// All.
        All = "all",
    }

    /// The order in which waiting writes are served.
    pub enum Scheduling {
        /// First come, first served.
        Fcfs = "fcfs",
        /// First ready, then first come.
        FrFcfs = "frfcfs",
    }

    /// What survives a power failure.
    pub enum Domain {
        /// What the cells hold.
        Media = "media",
        /// What a controller's write-pending queue accepted, too.
        Adr = "adr",
        /// The caches, too.
        Eadr = "eadr",
        /// What the device at the far end of a link accepted; the caches, as far as the energy
        /// lasts.
        Gpf = "gpf",
    }

    /// How addresses are spread over banks, in gem5's names.
    pub enum Mapping {
        /// A row of a bank after the other.
        Rows = "RoRaBaCoCh",
        /// A line of a bank after the other.
        Lines = "RoCoRaBaCh",
    }

    /// What of a line is written to the cells.
    pub enum Encoder {
        /// All of it.
        None = "none",
        /// The bits that differ (data-comparison write).
        Dcw = "dcw",
        /// The bits that differ, of a word or of its complement (Flip-N-Write).
        Fnw = "fnw",
    }
}
