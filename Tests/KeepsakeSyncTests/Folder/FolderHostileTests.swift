import Foundation
import KeepsakeReplication
import KeepsakeSimulation
import Testing

@testable import KeepsakeSync

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#elseif canImport(Darwin)
import Darwin
#endif

/// Hostile files, and folders that aren't what they were before.
@Suite("Hostile, damaged and missing shared folders") struct FolderHostileTests {
  let folders: CloudFolders
  let folder: URL

  init() throws {
    folders = try CloudFolders()
    folder = try folders.make()
  }

  private func failure(_ phase: EngineStatus.Phase) -> TransportFailure? {
    switch phase {
    case .waiting(let failure), .halted(let failure): failure
    default: nil
    }
  }

  private func segment(_ body: String) -> Data {
    Data("keepsake-state 1\n\(ContentHash(of: Data(body.utf8)))\n\(body)".utf8)
  }

  private func body(
    container: ContainerID = FolderDevice.container, previous: String = "", seen: String = "", replaces: String = "",
    cells: String = "",
    versions: String = ""
  ) -> String {
    #"""
    {"cells":[\#(cells)],"container":"\#(container)",\#(previous)"replaces":[\#(replaces)],"seen":[\#(seen)],\#
    "versions":[\#(versions)]}
    """#
  }

  private func cell(_ key: String, _ value: String) -> String {
    #"{"collection":"progress","key":"\#(key)","generation":0,"value":\#(value)}"#
  }

  @Test("a file with an altered bit is refused or decodes to the same, and a truncated or longer one is refused")
  func everyBit() throws {
    let device = try FolderDevice(folder, seed: 1)
    try device.raise("level", to: 1)
    try device.save("one")
    try device.sync()
    let segment = try Data(contentsOf: device.state(#require(try device.stateFiles.first)))
    let content = try Data(contentsOf: device.contentFile("one"))
    #expect(StateSegment(segment) != nil && ContentFile.decoded(content) != nil)
    for index in segment.indices {
      for bit in 0..<8 {
        var altered = segment
        altered[index] ^= 1 << bit
        // The checksum may be written in capitals; its value is the same.
        if StateSegment(altered) != nil {
          #expect(Character(UnicodeScalar(altered[index])).isUppercase, "byte \(index), bit \(bit)")
        }
      }
    }
    for index in content.indices {
      for bit in 0..<8 {
        var altered = content
        altered[index] ^= 1 << bit
        guard let decoded = ContentFile.decoded(altered) else { continue }
        #expect(decoded == ContentFile.decoded(content), "byte \(index), bit \(bit)")
      }
    }
    for length in 0..<segment.count { #expect(StateSegment(segment.prefix(length)) == nil) }
    for length in 0..<content.count { #expect(ContentFile.decoded(content.prefix(length)) == nil) }
    #expect(StateSegment(segment + [0x20]) == nil && ContentFile.decoded(content + [0]) == nil)
  }

  @Test("segments that no device would write are ignored, and everything else goes on")
  func forgedSegments() throws {
    let state = folder.appendingPathComponent("state")
    try FileManager.default.createDirectory(at: state, withIntermediateDirectories: true)
    let version =
      #"{"contents":[],"covers":[],"id":"%","length":0,"metadata":{"custom":{}},"provisional":false,"#
      + #""savedAtMilliseconds":1,"slot":"main","tombstone":true,"writer":"0000000000000001"}"#
    let (a, b) = ("0000000000000000000000000000000a", "0000000000000000000000000000000b")
    let of = { (id: String) in version.replacing("%", with: id) }
    #expect(StateSegment(segment(body(cells: cell("a", #"{"max":{"int":1}}"#), versions: of(a)))) != nil)
    let bad: [String] = [
      body(cells: cell("", #"{"max":{"int":1}}"#)),
      body(cells: cell("a\\u0007", #"{"max":{"int":1}}"#)),
      body(cells: cell(String(repeating: "k", count: 300), #"{"max":{"int":1}}"#)),
      body(cells: cell("a", #"{"max":{"double":"nan"}}"#)),
      body(cells: cell("a", #"{"max":{"int":99999999999999999999}}"#)),
      body(
        cells: cell(
          "a",
          #"""
          {"latest":{"stamp":{"caughtUp":true,"milliseconds":9223372036854775807,"writer":"0000000000000001"},\#
          "value":{"int":1}}}
          """#)),
      body(cells: cell("a", #"{"max":{"string":"\#(String(repeating: "x", count: 300_000))"}}"#)),
      body(cells: cell("a", #"{"unheard":1}"#)),
      body(
        cells: cell("a", #"{"max":{"int":1}}"#).replacing(
          #""generation":0"#, with: #""generation":18446744073709551615"#)),
      body(versions: of(a).replacing(#""length":0"#, with: #""length":-1"#)),
      body(versions: of(a).replacing(#""length":0"#, with: #""length":7"#)),
      body(versions: of(a).replacing(#""covers":[]"#, with: "\"covers\":[\"\(a)\"]")),
      body(versions: of(a).replacing("main", with: "\\u0001file/x")),
      body(
        versions: of(a).replacing(#""savedAtMilliseconds":1"#, with: #""savedAtMilliseconds":-9223372036854775808"#)),
      body(versions: of(a) + "," + of(a)),
      body(
        versions: of(a) + ","
          + of(b).replacing("main", with: "other").replacing(#""covers":[]"#, with: "\"covers\":[\"\(a)\"]")),
      body(seen: Array(repeating: "\"\(ContentHash(of: Data()))\"", count: 300).joined(separator: ",")),
      body(previous: #""previous":"zz","#),
      body().replacing(#""cells":[]"#, with: #""cells":{}"#),
      String(repeating: "[", count: 200_000),
      String(repeating: #"{"a":"#, count: 100_000),
      "null", "",
    ]
    for (index, text) in bad.enumerated() {
      #expect(StateSegment(segment(text)) == nil, "\(index)")
      try segment(text).write(to: state.appendingPathComponent("bad \(index)"))
    }
    // Well-formed, but of another player, or following a segment that never existed.
    let strange = [
      body(container: ContainerID(high: 5, low: 5), cells: cell("a", #"{"max":{"int":9}}"#)),
      body(previous: "\"previous\":\"\(ContentHash(of: Data()))\",", cells: cell("a", #"{"max":{"int":9}}"#)),
    ]
    for (index, text) in strange.enumerated() {
      #expect(StateSegment(segment(text)) != nil, "\(index)")
      try segment(text).write(to: state.appendingPathComponent("strange \(index)"))
    }
    let device = try FolderDevice(folder, seed: 1)
    try device.raise("b", to: 1)
    #expect(try device.sync() == .idle)
    #expect(device.value("a") == nil)
    try device.listen()
    try device.cloud.tidy(now: device.now)
  }

  @Test("a version that contradicts the known one with its id, or covers another slot's, is never applied")
  func contradictions() throws {
    let device = try FolderDevice(folder, seed: 1)
    let id = try device.save("one")
    try device.sync()
    let known = try #require(device.storage.version(id)?.record)
    var otherwise = known
    otherwise.contents = []
    otherwise.length = 0
    var foreign = known
    (foreign.id, foreign.slot, foreign.covers) = (VersionID(high: 1, low: 1), "elsewhere", [id])
    for record in [otherwise, foreign] {
      let cell = CellUpdate(key: CellKey(collection: "progress", key: "a"), state: CellState(value: .max(.int(9))))
      let (segment, bytes) = try StateSegment.encoded(
        FolderDevice.container, StateSegment.Links(previous: nil, seen: [], replaces: []), cells: [cell],
        versions: [record])
      try bytes.write(to: device.state("\(segment.hash)"))
      try device.listen()
      #expect(device.value("a") == nil && device.texts() == ["one"])
    }
    try device.reopen()
    try device.sync()
    #expect(device.value("a") == nil && device.texts() == ["one"])
  }

  @Test("links, folders, pipes, huge files and names that aren't text among the segments hold up no device")
  func strangeFiles() throws {
    let (first, second) = (try FolderDevice(folder, seed: 1), try FolderDevice(folder, seed: 2))
    try first.raise("a", to: 1)
    try first.sync()
    let name = try #require(try first.stateFiles.first)
    let outside = folders.url.appendingPathComponent("outside")
    try FileManager.default.moveItem(at: first.state(name), to: outside)
    try FileManager.default.createSymbolicLink(at: first.state(name), withDestinationURL: outside)
    try FileManager.default.createDirectory(at: first.state("folder"), withIntermediateDirectories: true)
    #expect(mkfifo(first.state("pipe").path, 0o666) == 0)
    #expect(FileManager.default.createFile(atPath: first.state("huge").path, contents: Data("keepsake-state 1\n".utf8)))
    let huge = try FileHandle(forWritingTo: first.state("huge"))
    try huge.truncate(atOffset: 1 << 40)
    try huge.close()
    var bytes = Array((folder.path + "/state/").utf8.map { CChar(bitPattern: $0) })
    bytes += [-1, -2, 0]
    let file = open(bytes, O_WRONLY | O_CREAT, 0o666)
    if file >= 0 { close(file) }
    try second.raise("b", to: 1)
    #expect(try second.sync() == .idle)
    #expect(second.value("a") == nil)
    // The writer finds that its segment isn't a file any more, and writes it again.
    try first.listen()
    try second.listen()
    #expect(second.value("a") == 1 && first.value("b") == 1)
  }

  @Test("a link in place of `state` or `contents` isn't followed, and sync fails with a message that names it")
  func linkedFolders() throws {
    let outside = folders.url.appendingPathComponent("outside")
    try FileManager.default.createDirectory(at: outside, withIntermediateDirectories: true)
    for name in ["state", "contents"] {
      let device = try FolderDevice(folder, seed: 1)
      try device.save("one")
      try FileManager.default.createSymbolicLink(at: folder.appendingPathComponent(name), withDestinationURL: outside)
      let failure = try #require(failure(try device.sync()))
      #expect(failure.kind == .server(retryAfterMilliseconds: nil))
      #expect(failure.message.contains(name))
      #expect(try FileManager.default.contentsOfDirectory(atPath: outside.path) == [])
      #expect(device.storage.outboxCount() == 1)
      try FileManager.default.removeItem(at: folder.appendingPathComponent(name))
      #expect(try device.sync() == .idle)
      try FileManager.default.removeItem(at: folder.appendingPathComponent("state"))
      try FileManager.default.removeItem(at: folder.appendingPathComponent("contents"))
    }
  }

  @Test("a folder that isn't there says what to do the first time; one that was there may only be away")
  func firstTime() throws {
    let missing = folders.url.appendingPathComponent("missing")
    for (container, isFirst) in [(FolderDevice.container, true), (nil, false)] as [(ContainerID?, Bool)] {
      let error = #expect(throws: TransportFailure.self) {
        try FolderPlace.plain(missing).container(making: container)
      }
      #expect(error?.kind == .unreachable)
      #expect(error?.message.contains("create it, empty, first") == isFirst, "\(String(describing: error))")
    }
    #expect(!FileManager.default.fileExists(atPath: missing.path))
  }

  @Test("a folder that vanishes or is empty counts as unreachable, and sync goes on when it is back")
  func vanishes() throws {
    let device = try FolderDevice(folder, seed: 1)
    try device.raise("a", to: 1)
    try device.sync()
    let away = folders.url.appendingPathComponent("away")
    try FileManager.default.moveItem(at: folder, to: away)
    try device.raise("a", to: 2)
    try device.save("one")
    #expect(failure(try device.sync())?.kind == .unreachable)
    // The mount point without its disk.
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    #expect(failure(try device.sync())?.kind == .unreachable)
    try device.reopen()
    #expect(failure(try device.sync())?.kind == .unreachable)
    #expect(throws: TransportFailure.self) { try device.cloud.poll() }
    #expect(throws: TransportFailure.self) {
      try device.cloud.putContent(EncodedContent(hash: ContentHash(of: Data()), length: 0, base: nil, bytes: Data()))
    }
    try device.cloud.tidy(now: device.now)
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == [])
    #expect(device.storage.outboxCount() > 0)
    try FileManager.default.removeItem(at: folder)
    try FileManager.default.moveItem(at: away, to: folder)
    #expect(try device.sync() == .idle)
    #expect(!device.answers.contains { $0.restart })
    let second = try FolderDevice(folder, seed: 2)
    try second.sync()
    #expect(second.value("a") == 2 && second.texts() == ["one"])
  }

  @Test("another player's folder is refused; of two identities the smaller one counts, whatever its file is called")
  func identities() throws {
    let device = try FolderDevice(folder, seed: 1)
    try device.raise("a", to: 1)
    let (smaller, larger) = (ContainerID(high: 0, low: 0), ContainerID(high: 9, low: 9))
    let identity = folder.appendingPathComponent("keepsake.json")
    let own = try Data(contentsOf: identity)
    try FileManager.default.removeItem(at: identity)
    #expect(try FolderPlace.plain(folder).container(making: larger) == larger)
    // The second device gets the identity that is there.
    #expect(try FolderPlace.plain(folder).container(making: smaller) == larger)
    #expect(failure(try device.sync())?.kind == .unauthorized)
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["keepsake.json"])

    // The device's own identity arrives, as a conflicted copy, and is the smaller one.
    try own.write(to: folder.appendingPathComponent("Keepsake (conflicted copy 2).json"))
    #expect(try FolderPlace.plain(folder).container(making: nil) == FolderDevice.container)
    #expect(try device.sync() == .idle)
    // Damaged identities don't count.
    for length in 0..<own.count {
      try own.prefix(length).write(to: identity)
      #expect(try FolderPlace.plain(folder).container(making: nil) == FolderDevice.container, "\(length)")
    }
    for index in own.indices {
      var altered = own
      altered[index] ^= 1
      try altered.write(to: identity)
      #expect(try FolderPlace.plain(folder).container(making: nil) == FolderDevice.container, "\(index)")
    }
    try Data(
      #"""
      {"format":2,"container":"\#(smaller)","checksum":"\#(ContentHash(of: Data("keepsake folder 2 \(smaller)".utf8)))"}
      """#
      .utf8
    )
    .write(to: identity)
    #expect(failure(try device.sync())?.message.contains("newer release") == true)
    #expect(throws: TransportFailure.self) {
      try FolderPlace.plain(folders.url.appendingPathComponent("nowhere")).container(making: larger)
    }
  }

  @Test("while the folder can't be written to, saves wait, and they are sent once it can")
  func blockedPlace() throws {
    // Permissions don't bind root, so something else is in the way: a file where a folder has to be made.
    let device = try FolderDevice(folder, seed: 1)
    try device.save("one")
    let place = device.contentFile("one").deletingLastPathComponent()
    try FileManager.default.createDirectory(at: place.deletingLastPathComponent(), withIntermediateDirectories: true)
    try Data().write(to: place)
    #expect(failure(try device.sync())?.kind == .server(retryAfterMilliseconds: nil))
    #expect(device.storage.outboxCount() == 1)
    try FileManager.default.removeItem(at: place)
    #expect(try device.sync() == .idle)
    #expect(device.storage.outboxCount() == 0)
  }
}
