import Foundation

/// SQLite's write-ahead log as it lies on the disk, after the format that SQLite documents: a header of 32 bytes, then
/// frames, each a header of 24 bytes (page number, pages of the database after a commit, two salts, two checksums) and a page.
///
/// SQLite takes the frames up to the first that doesn't fit its checksum, and passes over the rest without a word: one
/// altered byte in the middle would silently take back all commits after it. Here that is told from what is normal: frames of
/// an earlier round of the log (other salts), and those of a commit that was cut off (no commit mark after them).
struct WriteAheadLog {
  enum State: Equatable {
    /// There is none, or nothing was ever committed to it.
    case empty
    /// Everything that was committed to it, SQLite will read.
    case sound
    /// SQLite would leave out what was committed.
    case damaged
  }

  private static let headerSize = 32
  private static let frameHeaderSize = 24
  private static let magic: UInt32 = 0x377F_0682
  private static let version: UInt32 = 3_007_000

  let state: State
  let pageSize: Int
  /// The number of the page in each frame, up to the last commit that can be made out, whether or not SQLite takes it.
  let frames: [Int]
  private let file: RawFile?

  private init(_ state: State, pageSize: Int = 0, frames: [Int] = [], file: RawFile? = nil) {
    (self.state, self.pageSize, self.frames, self.file) = (state, pageSize, frames, file)
  }

  /// Reads all of the log's headers and checks every frame. Costs one pass over the file, which is there only after a crash.
  static func read(_ url: URL, defaultPageSize: Int) throws -> WriteAheadLog {
    guard let file = try RawFile(url), file.size > headerSize else { return WriteAheadLog(.empty) }
    guard let header = file.bytes(at: 0, count: headerSize) else { return WriteAheadLog(.damaged) }
    // The header is synced before the first frame is written: where it never arrived, nothing was committed.
    if header.allSatisfy({ $0 == 0 }) { return WriteAheadLog(.empty) }
    let isBigEndian = header.word(at: 0) & 1 == 1
    var sum = Sum(isBigEndian: isBigEndian)
    sum.add(header[..<24])
    let isSound =
      header.word(at: 0) & ~1 == magic && header.word(at: 4) == version && sum.first == header.word(at: 24)
      && sum.second == header.word(at: 28)
    let stated = Int(header.word(at: 8))
    let pageSize = stated >= 512 && stated <= 65_536 && stated & (stated - 1) == 0 ? stated : defaultPageSize
    let salts = (header.word(at: 16), header.word(at: 20))
    return check(file, pageSize: pageSize, salts: isSound ? salts : nil, sum)
  }

  /// `salts` nil: the header can't be trusted, so that any frame may be one of this round.
  private static func check(_ file: RawFile, pageSize: Int, salts: (UInt32, UInt32)?, _ start: Sum) -> WriteAheadLog {
    var sum = start
    var frames: [Int] = []
    var isChained = salts != nil
    var committed = 0
    var lost = false
    let count = (file.size - headerSize) / (frameHeaderSize + pageSize)
    for index in 0..<count {
      let offset = headerSize + index * (frameHeaderSize + pageSize)
      guard let header = file.bytes(at: offset, count: frameHeaderSize) else {
        (isChained, lost) = (false, true)
        frames.append(0)
        continue
      }
      let isCommit = header.word(at: 4) != 0
      if let salts {
        let (first, second) = (header.word(at: 8) == salts.0, header.word(at: 12) == salts.1)
        if isChained {
          guard let page = file.bytes(at: offset + frameHeaderSize, count: pageSize) else { return WriteAheadLog(.damaged) }
          var next = sum
          next.add(header[..<8])
          next.add(page[...])
          let isValid = next.first == header.word(at: 16) && next.second == header.word(at: 20)
          if isValid, first, second { sum = next } else { isChained = false }
          // A frame of an earlier round differs in both salts.
          if isValid, first != second { lost = lost || isCommit }
        }
        guard isChained || first || second else {
          // Of an earlier round: its pages are older than the database.
          frames.append(0)
          continue
        }
        if !isChained, isCommit { lost = true }
      } else if isCommit {
        lost = true
      }
      frames.append(Int(header.word(at: 0)))
      if isCommit { committed = frames.count }
    }
    let state: State = salts == nil || lost ? .damaged : committed == 0 ? .empty : .sound
    return WriteAheadLog(state, pageSize: pageSize, frames: Array(frames[..<committed]), file: file)
  }

  /// The page in a frame; nil if it can't be read.
  func page(inFrame index: Int) -> [UInt8]? {
    file?.bytes(at: Self.headerSize + index * (Self.frameHeaderSize + pageSize) + Self.frameHeaderSize, count: pageSize)
  }

  /// SQLite's sum over pairs of 32-bit words.
  private struct Sum {
    let isBigEndian: Bool
    var first: UInt32 = 0
    var second: UInt32 = 0

    mutating func add(_ bytes: ArraySlice<UInt8>) {
      bytes.withUnsafeBytes { raw in
        var (left, right) = (first, second)
        var offset = 0
        while offset + 8 <= raw.count {
          let a = raw.loadUnaligned(fromByteOffset: offset, as: UInt32.self)
          let b = raw.loadUnaligned(fromByteOffset: offset + 4, as: UInt32.self)
          left = left &+ (isBigEndian ? UInt32(bigEndian: a) : UInt32(littleEndian: a)) &+ right
          right = right &+ (isBigEndian ? UInt32(bigEndian: b) : UInt32(littleEndian: b)) &+ left
          offset += 8
        }
        (first, second) = (left, right)
      }
    }
  }
}
