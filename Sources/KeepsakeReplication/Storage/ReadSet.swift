/// What a decision about a container reads: storage loads all of it in one round trip, as of one moment.
///
/// A request shows most of what its decision reads. What it doesn't show is found out while deciding
/// (``NotLoaded``); then both are loaded together, and the decision begins anew.
package struct ReadSet: Hashable, Sendable {
  /// Changes in the order of their seqs, with what a response says about them: which of the versions are covered, the
  /// heads of their slots, and the small contents of heads.
  package struct Changes: Hashable, Sendable {
    /// The seq after which they begin.
    package var after: UInt64
    /// Loading ends after this many changes, or this many bytes of them, but never before the first.
    package var count: Int
    package var bytes: Int

    package init(after: UInt64, count: Int, bytes: Int) {
      (self.after, self.count, self.bytes) = (after, count, bytes)
    }
  }

  /// Names of slots in their order.
  package struct SlotNames: Hashable, Sendable {
    /// The name after which they begin; nil for the first.
    package var after: ExactText?
    package var limit: Int
  }

  /// The device that asks: whether it was removed, how far it has come, when it was last seen, whether its store went
  /// back.
  package var device: DeviceID?
  /// Whether this chain is recorded as the device's.
  package var chain: ChainID?
  /// All chains that are recorded as the device's.
  package var allChains = false
  /// How far each device has come.
  package var reached = false
  package var marks: Set<UInt64> = []
  package var changes: Changes?

  package var cells: Set<CellKey> = []
  /// Versions, and whether they are covered.
  package var versions: Set<VersionID> = []
  /// Only the slots of versions.
  package var slotsOfVersions: Set<VersionID> = []
  /// Heads of slots, with their records.
  package var slots: Set<ExactText> = []
  /// Every version of a slot.
  package var histories: Set<ExactText> = []
  /// Names of slots.
  package var slotNames: SlotNames?
  /// What is known of where each device is.
  package var visits = false
  /// Where the container stood in the past.
  package var pastPositions = false

  /// Whether contents are here, and what they take.
  package var contents: Set<ContentHash> = []
  /// Contents as they were received, if they are small enough for a response.
  package var frames: Set<ContentHash> = []
  package var suspects = false
  /// The heads that need a content.
  package var needing: Set<ContentHash> = []
  package var used = false
  /// What holds the contents of these slots' versions, and their bases.
  package var rooms: Set<ExactText> = []
  /// The same for contents.
  package var roomOfContents: Set<ContentHash> = []
  /// The same for everything that the container has.
  package var wholeRoom = false

  package var offers = false
  package var parts: Set<OfferID> = []
  package var bank = BankReads()

  package init() {}

  package var isEmpty: Bool { self == ReadSet() }

  package mutating func formUnion(_ other: ReadSet) {
    device = other.device ?? device
    chain = other.chain ?? chain
    allChains = allChains || other.allChains
    reached = reached || other.reached
    marks.formUnion(other.marks)
    if let theirs = other.changes {
      changes =
        changes.map {
          Changes(
            after: min($0.after, theirs.after), count: max($0.count, theirs.count), bytes: max($0.bytes, theirs.bytes))
        } ?? theirs
    }
    cells.formUnion(other.cells)
    versions.formUnion(other.versions)
    slotsOfVersions.formUnion(other.slotsOfVersions)
    slots.formUnion(other.slots)
    histories.formUnion(other.histories)
    slotNames = other.slotNames ?? slotNames
    visits = visits || other.visits
    pastPositions = pastPositions || other.pastPositions
    contents.formUnion(other.contents)
    frames.formUnion(other.frames)
    suspects = suspects || other.suspects
    needing.formUnion(other.needing)
    used = used || other.used
    rooms.formUnion(other.rooms)
    roomOfContents.formUnion(other.roomOfContents)
    wholeRoom = wholeRoom || other.wholeRoom
    offers = offers || other.offers
    parts.formUnion(other.parts)
    bank.formUnion(other.bank)
  }

  /// Returns what of these reads isn't among `known`. Only what ``ContainerStorage/need(_:)`` is called with is
  /// compared: single items, no ranges and none of the bank.
  func missing(from known: ReadSet) -> ReadSet {
    var missing = ReadSet()
    missing.cells = cells.subtracting(known.cells)
    missing.versions = versions.subtracting(known.versions)
    missing.slotsOfVersions = slotsOfVersions.subtracting(known.slotsOfVersions).subtracting(known.versions)
    missing.slots = slots.subtracting(known.slots)
    missing.histories = histories.subtracting(known.histories)
    if slotNames != known.slotNames { missing.slotNames = slotNames }
    missing.visits = visits && !known.visits
    missing.pastPositions = pastPositions && !known.pastPositions
    missing.contents = contents.subtracting(known.contents)
    missing.frames = frames.subtracting(known.frames)
    missing.needing = needing.subtracting(known.needing)
    missing.used = used && !known.used
    missing.suspects = suspects && !known.suspects
    if !known.wholeRoom {
      missing.wholeRoom = wholeRoom
      missing.rooms = rooms.subtracting(known.rooms)
    }
    return missing
  }

  /// How many items are asked for: what loading them costs, roughly.
  package var work: Int {
    marks.count + cells.count + versions.count + slotsOfVersions.count + slots.count + contents.count + bank.work
  }
}

/// A decision asked for what wasn't loaded: load it as well, and decide anew.
package struct NotLoaded: Error {
  package var reads: ReadSet

  package init(_ add: (inout ReadSet) -> Void) {
    reads = ReadSet()
    add(&reads)
  }

  init(_ reads: ReadSet) { self.reads = reads }
}

/// A text that equals only one with the same bytes, as in databases: two spellings that Unicode considers equal are two
/// texts.
package struct ExactText: Hashable, Comparable, Sendable {
  package var text: String

  package init(_ text: String) { self.text = text }

  package static func == (left: Self, right: Self) -> Bool { left.text.utf8.elementsEqual(right.text.utf8) }

  package static func < (left: Self, right: Self) -> Bool {
    left.text.utf8.lexicographicallyPrecedes(right.text.utf8)
  }

  package func hash(into hasher: inout Hasher) {
    // Canonically equal strings have the same hash, which is coarser than equality of bytes and therefore allowed.
    hasher.combine(text)
  }
}
