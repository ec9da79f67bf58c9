#if Cloud
import Foundation
import KeepsakeInterchange
import KeepsakeReplication
import KeepsakeServer
import KeepsakeStore
import Testing

@testable import KeepsakeCommand

/// What the server opens for the studio, in its own process: a player has made it.
@Suite struct AdminSaveReaderTests {
  private func failure(_ save: Data) throws -> String {
    try #require(throws: UnreadableSave.self) { _ = try AdminSaveReader().json(save) }.message
  }

  /// A file as `keepsake export` writes it.
  private func exported(_ bytes: Data) throws -> Data {
    let record = VersionRecord(
      id: VersionID(high: 1, low: 2), slot: "main", covers: [], contents: [], length: bytes.count,
      savedAtMilliseconds: 1, writer: WriterID(1), provisional: false)
    return try SaveFile(record, bytes: bytes).encoded(.none)
  }

  /// A keyed archive of one list, which has the same text many times.
  private func repeating() throws -> Data {
    let list: PropertyList = [
      "NS.objects": .array(Array(repeating: .uid(3), count: 2_000)), "$class": .uid(2),
    ]
    let type: PropertyList = ["$classname": "NSArray", "$classes": ["NSArray", "NSObject"]]
    let keyed: PropertyList = [
      "$version": 100_000, "$archiver": "NSKeyedArchiver", "$top": ["root": .uid(1)],
      "$objects": ["$null", list, type, .string(String(repeating: "y", count: 1 << 20))],
    ]
    return try keyed.encoded(as: .binary)
  }

  @Test("what opens to more than is shown is refused, wherever it is in the save")
  func wrapped() throws {
    let small = Data(#"{"level": 3}"#.utf8)
    for save in [small, try Zstd.compress(small), try exported(small), try exported(Zstd.compress(small))] {
      #expect(try AdminSaveReader().json(save).range(of: Data("level".utf8)) != nil)
    }
    let zeros = Data(count: ShownSave.maximumBytes + 1)
    let large = Data("[\"".utf8) + Data(repeating: UInt8(ascii: "x"), count: ShownSave.maximumBytes) + Data("\"]".utf8)
    for save in [zeros, large] {
      let frame = try Zstd.compress(save)
      for save in [frame, try exported(save), try exported(frame), Data(frame.base64EncodedString().utf8)] {
        #expect(save.count < 1 << 20)
        #expect(try failure(save).contains("more than"))
      }
    }
  }

  @Test("a text of more values than fit into memory is refused before it is read")
  func values() throws {
    let many = Data("[0\(String(repeating: ",0", count: AdminSaveReader.maximumValues))]".utf8)
    for save in [many, try Zstd.compress(many), try exported(many)] {
      #expect(try failure(save).contains("more than \(AdminSaveReader.maximumValues) values"))
    }
  }

  @Test("text that is referred to many times isn't written out each time, in an exported save neither")
  func repeated() throws {
    for save in [try repeating(), try exported(repeating())] {
      #expect(try failure(save).contains("referred to many times"))
    }
  }
}
#endif
