#if Cloud
import Foundation
import KeepsakeArchive
import KeepsakeInspection
import KeepsakeInterchange
import TestSupport
import Testing

@testable import KeepsakeCommand

/// Real files of other programs. `KEEPSAKE_CORPUS` names the folder in which they are; without it these tests are
/// skipped.
@Suite struct CommandCorpusTests {
  private static func files(_ set: String) throws -> [URL] {
    try FileManager.default.contentsOfDirectory(
      at: #require(RealFiles.folder).appending(path: set), includingPropertiesForKeys: nil
    )
    .sorted { $0.path < $1.path }
  }

  /// The result of `inspect` for a file, or the failure that it would report.
  private static func look(at file: URL) -> Result<ArchiveInspection, CommandFailure> {
    do {
      guard case .archive(let inspection) = try InspectCommand.look(at: file.path) else {
        return .failure(CommandFailure(.software, "no file"))
      }
      return .success(inspection)
    } catch {
      return .failure(CommandFailure(error))
    }
  }

  @Test("every keyed archive is shown, equals itself, and survives a round trip through JSON", .needsRealFiles)
  func keyed() throws {
    var (shown, back) = (0, 0)
    for file in try Self.files("nskeyed") {
      let name = file.lastPathComponent
      let inspection = try Self.look(at: file).get()
      #expect(inspection.text().contains("keyed archive") && !inspection.json().isEmpty, "\(name)")
      #expect(ArchiveDifference(from: inspection, to: inspection).isEmpty, "\(name)")
      shown += 1
      let saved = try SavedFile(OpenedFile(Data(contentsOf: file), at: name))
      let json = try Conversion(of: saved, to: .json, form: nil)
      let again = try Conversion(of: SavedFile(json.bytes, named: name), to: .keyed, form: nil)
      let difference = try ArchiveDifference(from: inspection, to: SavedFile(again.bytes, named: name).inspection())
      #expect(difference.isEmpty, "\(name): \(difference.text().prefix(300))")
      back += 1
    }
    print("commands: \(shown) keyed archives shown, \(back) to JSON and back")
    #expect(shown > 0)
  }

  @Test("every property list is shown; a conversion to XML or JSON keeps every value or is refused", .needsRealFiles)
  func propertyLists() throws {
    var (shown, converted, refused, none) = (0, 0, 0, 0)
    for file in try Self.files("bplist_ok") {
      let name = file.lastPathComponent
      switch Self.look(at: file) {
      case .failure(let failure):
        // In the old text format or damaged, and reported as such.
        #expect(failure.kind == .data && !failure.message.isEmpty, "\(name)")
        none += 1
      case .success(let inspection):
        #expect(!inspection.text().isEmpty && !inspection.json().isEmpty, "\(name)")
        shown += 1
        let saved = try SavedFile(OpenedFile(Data(contentsOf: file), at: name))
        for target in [FileFormat.xml, .json] {
          do {
            let bytes = try Conversion(of: saved, to: target, form: .tagged).bytes
            let again = try SavedFile(bytes, named: name).inspection()
            #expect(ArchiveDifference(from: inspection, to: again).isEmpty, "\(name) as \(target)")
            converted += 1
          } catch {
            #expect(CommandFailure(error).kind == .data, "\(name): \(error)")
            refused += 1
          }
        }
      }
    }
    print(
      """
      commands: \(shown) property lists shown, \(none) told to be none, \(converted) conversions and back, \(refused) \
      refused
      """)
    #expect(shown > 0 && converted > 10 * refused)
  }

  @Test("every broken file is shown, or fails with a message and the exit status for damaged input", .needsRealFiles)
  func broken() throws {
    var (values, failures) = (0, 0)
    for file in try Self.files("bplist_bad") {
      switch Self.look(at: file) {
      case .success(let inspection):
        #expect(!inspection.text().isEmpty)
        values += 1
      case .failure(let failure):
        #expect(failure.kind == .data && !failure.message.isEmpty, "\(file.lastPathComponent): \(failure)")
        failures += 1
      }
    }
    print("commands: of the broken files \(values) are shown, \(failures) end in an error")
    #expect(failures > 0)
  }
}
#endif
