import Foundation

/// SQLite's write-ahead log as it is on disk, in the format that SQLite documents: a header of 32 bytes, then frames,
/// each with a header of 24 bytes (page number, pages of the database after a commit, two salts, two checksums) and a
/// page.
///
/// SQLite accepts the frames up to the first one with a wrong checksum, and silently ignores the rest: one altered byte
/// in the middle would undo all commits after it without an error. But after a power cut, the frames of the last commit
/// are present, missing or torn in any mixture, and that is no damage: a commit is acknowledged once all its frames are
/// synced, and the next one writes its first frame after that. So frames that SQLite doesn't accept were lost if
///
/// - something continues from a commit mark among them: that commit was synced, or nothing would follow it (except the
///   first of a log); or
/// - SQLite's index beside the log counts them: a commit is counted once it is synced.
///
/// Neither is true of a torn tail. If the very last commit is damaged, the first isn't true either, and the second only
/// as long as the index exists, which a power cut ends. The two cases can't be distinguished then, and SQLite continues
/// with the commit before.
struct WriteAheadLog {
  enum State: Equatable {
    /// There is no log, or nothing was ever committed to it.
    case empty
    /// SQLite will read everything that was committed to it. Its tail may be torn.
    case sound
    /// SQLite would ignore something that was committed.
    case damaged
  }

  private static let headerSize = 32
  private static let frameHeaderSize = 24
  private static let magic: UInt32 = 0x377F_0682
  private static let version: UInt32 = 3_007_000
  /// What a disk writes completely or not at all.
  private static let smallestSector = 512

  let state: State
  let pageSize: Int
  /// The page number of each frame, up to the last commit. For a damaged log, as far as frames can be recognized,
  /// whether or not SQLite accepts them.
  let frames: [Int]
  private let file: RawFile?

  static var none: WriteAheadLog { WriteAheadLog(.empty) }

  private init(_ state: State, pageSize: Int = 0, frames: [Int] = [], file: RawFile? = nil) {
    (self.state, self.pageSize, self.frames, self.file) = (state, pageSize, frames, file)
  }

  /// Reads all headers of the log and checks every frame. Costs one pass over the file, which only exists after a
  /// crash.
  static func read(_ url: URL, defaultPageSize: Int) throws -> WriteAheadLog {
    guard let file = try RawFile(url), file.size > headerSize else { return WriteAheadLog(.empty) }
    guard let header = file.bytes(at: 0, count: headerSize) else { return WriteAheadLog(.damaged) }
    // The header is synced before the first frame is written: if it never arrived, nothing was committed.
    if header.allSatisfy({ $0 == 0 }) { return WriteAheadLog(.empty) }
    let isBigEndian = header.word(at: 0) & 1 == 1
    var sum = LogChecksum(isBigEndian: isBigEndian)
    sum.add(header[..<24])
    let isSound =
      header.word(at: 0) & ~1 == magic && header.word(at: 4) == version && sum.first == header.word(at: 24)
      && sum.second == header.word(at: 28)
    let stated = Int(header.word(at: 8))
    let pageSize = stated >= 512 && stated <= 65_536 && stated & (stated - 1) == 0 ? stated : defaultPageSize
    guard isSound else { return unheaded(file, pageSize, header) }
    // The index is never synced, so it may be from any earlier moment, or no index at all.
    let index = try LogIndex.read(beside: url).usable
    let counted = index.flatMap { $0.salts.elementsEqual(header[16..<24]) ? $0.committedFrames : nil }
    return check(file, pageSize, salts: (header.word(at: 16), header.word(at: 20)), sum, counted: counted)
  }

  /// Reads a log without a valid header. Any frame may be of the current generation, and SQLite accepts none. There was
  /// a commit if a frame with a commit mark fits what precedes it; a file that so far only has the size of a log
  /// contains none.
  private static func unheaded(_ file: RawFile, _ pageSize: Int, _ start: [UInt8]) -> WriteAheadLog {
    var frames: [Int] = []
    var committed = 0
    var isEvident = false
    // The header states the byte order of the sums, but can't be trusted here.
    var sums = [true, false].map { LogChecksum(isBigEndian: $0, first: start.word(at: 24), second: start.word(at: 28)) }
    for index in 0..<((file.size - headerSize) / (frameHeaderSize + pageSize)) {
      let offset = headerSize + index * (frameHeaderSize + pageSize)
      guard let header = file.bytes(at: offset, count: frameHeaderSize),
        let page = file.bytes(at: offset + frameHeaderSize, count: pageSize)
      else {
        isEvident = true
        frames.append(0)
        continue
      }
      let (first, second) = (header.word(at: 16), header.word(at: 20))
      frames.append(Int(header.word(at: 0)))
      if header.word(at: 4) != 0 { committed = frames.count }
      for order in sums.indices {
        sums[order].add(header[..<8])
        sums[order].add(page[...])
        if header.word(at: 4) != 0, sums[order].first == first, sums[order].second == second { isEvident = true }
        sums[order].restart(first, second)
      }
    }
    guard isEvident else { return WriteAheadLog(.empty, pageSize: pageSize) }
    return WriteAheadLog(.damaged, pageSize: pageSize, frames: Array(frames[..<committed]), file: file)
  }

  private static func check(
    _ file: RawFile, _ pageSize: Int, salts: (UInt32, UInt32), _ start: LogChecksum, counted: Int?
  ) -> WriteAheadLog {
    var sum = start
    var frames: [Int] = []
    var isChained = true
    /// The number of frames up to the last commit that SQLite accepts, and up to the last that can be recognized.
    var (taken, known) = (0, 0)
    var lost = false
    /// Commits that SQLite doesn't accept and that others follow.
    var followed = 0
    /// Whether the previous frame has a commit mark of this generation and isn't one that SQLite accepts.
    var followsLostCommit = false
    for index in 0..<((file.size - headerSize) / (frameHeaderSize + pageSize)) {
      let offset = headerSize + index * (frameHeaderSize + pageSize)
      guard let header = file.bytes(at: offset, count: frameHeaderSize),
        let page = file.bytes(at: offset + frameHeaderSize, count: pageSize)
      else {
        // A sector that can't be read.
        (isChained, lost, followsLostCommit) = (false, true, false)
        frames.append(0)
        continue
      }
      // Continues from the checksum stored in the previous frame, so it is right even after a frame with a wrong page.
      sum.add(header[..<8])
      sum.add(page[...])
      let (first, second) = (header.word(at: 8) == salts.0, header.word(at: 12) == salts.1)
      let isValid = sum.first == header.word(at: 16) && sum.second == header.word(at: 20) && first && second
      sum.restart(header.word(at: 16), header.word(at: 20))
      isChained = isChained && isValid
      if isValid, followsLostCommit { followed += 1 }
      // A header that spans two sectors may be half from an earlier generation.
      let isOfThisRound = first && second && (isValid || offset % smallestSector <= smallestSector - frameHeaderSize)
      let isCommit = header.word(at: 4) != 0
      followsLostCommit = !isChained && isCommit && isOfThisRound
      // Frames of an earlier generation: their pages are older than the database.
      frames.append(first || second ? Int(header.word(at: 0)) : 0)
      if isCommit, isChained { taken = frames.count }
      if isCommit, first || second { known = frames.count }
    }
    // GRDB's own first commit to a log is empty and isn't synced: the commit after it may be torn together with it.
    if followed > (taken == 0 ? 1 : 0) { lost = true }
    if let counted, counted > taken { lost = true }
    let state: State = lost ? .damaged : taken == 0 ? .empty : .sound
    return WriteAheadLog(state, pageSize: pageSize, frames: Array(frames[..<(lost ? known : taken)]), file: file)
  }

  /// Returns the page in a frame; nil if it can't be read.
  func page(inFrame index: Int) -> [UInt8]? {
    file?.bytes(at: Self.headerSize + index * (Self.frameHeaderSize + pageSize) + Self.frameHeaderSize, count: pageSize)
  }
}
