import BenchmarkKit
import Foundation
import Keepsake

/// Reading and writing other programs' files beside Foundation's own readers and writers, in one run.
struct InterchangeFigures: Codable {
  struct Row: Codable {
    var what: String
    var bytes: Int
    var microseconds: Double
    var foundationMicroseconds: Double
    /// By how much Foundation takes longer.
    var ratio: Double { foundationMicroseconds / microseconds }
  }

  var machine: String
  var rows: [Row] = []

  /// So many of the largest files, of each folder.
  private static let files = 3

  static func measure(rounds: Int, corpus: String?, machine: String) throws -> InterchangeFigures {
    var figures = InterchangeFigures(machine: machine)
    let list = OldSave.list
    for format in [PropertyList.Format.binary, .xml] {
      let bytes = try list.encoded(as: format)
      figures.rows.append(try reading(bytes, "reading a property list, \(name(format))", rounds))
      figures.rows.append(try writing(list, bytes, format, rounds))
    }
    figures.rows += try keyed(rounds)
    if let corpus {
      for file in try largest(corpus, "bplist_ok") {
        figures.rows.append(try reading(Data(contentsOf: file), "reading \(file.lastPathComponent.suffix(40))", rounds))
      }
      for file in try largest(corpus, "nskeyed") {
        figures.rows.append(try reading(Data(contentsOf: file), "reading \(file.lastPathComponent.suffix(40))", rounds))
      }
    }
    return figures
  }

  private static func name(_ format: PropertyList.Format) -> String { format == .binary ? "binary" : "XML" }

  private static func row(
    _ what: String, _ bytes: Int, _ rounds: Int, _ ours: () throws -> Void, _ theirs: () throws -> Void
  ) throws -> Row {
    Progress.report(what)
    var times: ([Double], [Double]) = ([], [])
    // In turns, so that a busy minute of the machine is shared by both; the first of each has nothing before it.
    for round in 0...rounds {
      let (ours, theirs) = (try processor(ours), try processor(theirs))
      if round > 0 {
        times.0.append(ours)
        times.1.append(theirs)
      }
    }
    return Row(
      what: what, bytes: bytes, microseconds: times.0.sorted()[rounds / 2],
      foundationMicroseconds: times.1.sorted()[rounds / 2])
  }

  /// Microseconds of the processor: all of it happens on this thread, and what else the machine does is left out.
  private static func processor(_ body: () throws -> Void) throws -> Double {
    func now() -> Double {
      var time = timespec()
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
      return Double(time.tv_sec) * 1_000_000 + Double(time.tv_nsec) / 1_000
    }
    let start = now()
    try body()
    return now() - start
  }

  private static func reading(_ bytes: Data, _ what: String, _ rounds: Int) throws -> Row {
    func ours() throws { _ = try PropertyList(bytes) }
    func theirs() throws { _ = try PropertyListSerialization.propertyList(from: bytes, format: nil) }
    return try row(what, bytes.count, rounds, ours, theirs)
  }

  private static func writing(_ list: PropertyList, _ bytes: Data, _ format: PropertyList.Format, _ rounds: Int) throws
    -> Row
  {
    let read = try PropertyListSerialization.propertyList(from: bytes, format: nil)
    func ours() throws { _ = try list.encoded(as: format) }
    func theirs() throws {
      _ = try PropertyListSerialization.data(
        fromPropertyList: read, format: format == .binary ? .binary : .xml, options: 0)
    }
    return try row("writing a property list, \(name(format))", bytes.count, rounds, ours, theirs)
  }

  private static func keyed(_ rounds: Int) throws -> [Row] {
    let bytes = try OldSave.archive()
    func foundation() throws {
      let unarchiver = try NSKeyedUnarchiver(forReadingFrom: bytes)
      unarchiver.setClass(OldHero.self, forClassName: OldSave.className)
      let heroes =
        unarchiver.decodeObject(of: [NSArray.self, OldHero.self], forKey: NSKeyedArchiveRootObjectKey) as? [OldHero]
      try BenchmarkError.require(heroes?.count == OldSave.heroes, "Foundation read another archive")
    }
    func codable() throws {
      let heroes = try KeyedArchive.decode([CodedHero].self, from: bytes, classes: [OldSave.className: CodedHero.self])
      try BenchmarkError.require(heroes.count == OldSave.heroes, "another archive was read")
    }
    func archivable() throws {
      let heroes = try KeyedArchive.decode([Hero].self, from: bytes, classes: [OldSave.className: Hero.self])
      try BenchmarkError.require(heroes.count == OldSave.heroes, "another archive was read")
    }
    return [
      try row("decoding a keyed archive into Codable types", bytes.count, rounds, codable, foundation),
      try row("decoding a keyed archive into @Archivable types", bytes.count, rounds, archivable, foundation),
    ]
  }

  /// The largest files that Foundation reads.
  private static func largest(_ corpus: String, _ folder: String) throws -> [URL] {
    let urls = try FileManager.default.contentsOfDirectory(
      at: URL(filePath: corpus).appending(path: folder), includingPropertiesForKeys: nil)
    let sized = try urls.map { (url: $0, bytes: try Data(contentsOf: $0)) }.sorted {
      ($0.bytes.count, $1.url.path) > ($1.bytes.count, $0.url.path)
    }
    return Array(
      sized.lazy.filter { file in
        // Whether Foundation can is what is asked.
        (try? PropertyListSerialization.propertyList(from: file.bytes, format: nil)) != nil
      }.prefix(files).map(\.url))
  }
}
