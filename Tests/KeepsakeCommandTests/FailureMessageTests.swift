#if Cloud
import Foundation
import Keepsake
import KeepsakeInterchange
import KeepsakeMirror
import KeepsakeReplication
import KeepsakeServer
import KeepsakeStore
import KeepsakeSync
import TestSupport
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@testable import KeepsakeCommand

/// Foundation's errors describe themselves to programmers; the command's messages are for people.
@Suite struct FailureMessageTests {
  private struct Level: Codable { var title: String }

  /// Failures of the system and of Foundation, provoked, and as they occur inside other errors.
  private func provoked(in folder: URL) throws -> [(what: String, error: any Error)] {
    let file = folder.appendingPathComponent("file")
    let missing = folder.appendingPathComponent("missing")
    try Data([0xC3, 0x28, 0xFF]).write(to: file)
    let files = FileManager.default
    let attempts: [(String, () throws -> Void)] = [
      ("read a missing file", { _ = try Data(contentsOf: missing) }),
      ("read a folder", { _ = try Data(contentsOf: folder) }),
      ("read below a file", { _ = try Data(contentsOf: file.appendingPathComponent("x")) }),
      ("read text that isn't any", { _ = try String(contentsOf: file, encoding: .utf8) }),
      ("write into a missing folder", { try Data().write(to: missing.appendingPathComponent("x")) }),
      ("write over a folder", { try Data().write(to: folder) }),
      ("list a missing folder", { _ = try files.contentsOfDirectory(atPath: missing.path) }),
      ("list a file", { _ = try files.contentsOfDirectory(atPath: file.path) }),
      ("ask about a missing file", { _ = try files.attributesOfItem(atPath: missing.path) }),
      ("remove a missing file", { try files.removeItem(at: missing) }),
      ("copy over a file", { try files.copyItem(at: folder, to: file) }),
      (
        "create a folder in a file",
        { try files.createDirectory(at: file.appendingPathComponent("x"), withIntermediateDirectories: true) }
      ),
      ("open a missing file", { _ = try FileHandle(forReadingFrom: missing) }),
      ("create a store's folder in a file", { try StoreFolder.create(file.appendingPathComponent("x/y")) }),
      ("open a store in a file", { _ = try Store.open(at: file.appendingPathComponent("x")) }),
      ("read a missing file as a store", { _ = try InspectCommand.look(at: missing.path) }),
      ("decode garbage as JSON", { _ = try JSONDecoder().decode(Level.self, from: Data("{".utf8)) }),
      ("decode another type", { _ = try JSONDecoder().decode(Level.self, from: Data("[]".utf8)) }),
      ("decode without a key", { _ = try JSONDecoder().decode([Level].self, from: Data("[{}]".utf8)) }),
      ("encode infinity", { _ = try JSONEncoder().encode([Double.infinity]) }),
      ("parse garbage as JSON", { _ = try JSONSerialization.jsonObject(with: Data("{".utf8)) }),
      (
        "parse garbage as a property list",
        { _ = try PropertyListSerialization.propertyList(from: Data("<plist><a".utf8), format: nil) }
      ),
      (
        "read a damaged property list",
        { _ = try StructuredFile.decode(Level.self, from: Data("<plist><a".utf8), as: .propertyList) }
      ),
    ]
    var errors: [(what: String, error: any Error)] = []
    for (what, attempt) in attempts {
      let error = #expect(throws: (any Error).self, "\(what)") { try attempt() }
      if let error { errors.append((what, error)) }
    }
    for code in [URLError.Code.cannotConnectToHost, .timedOut, .notConnectedToInternet, .badServerResponse] {
      errors.append(("request a URL: \(code.rawValue)", URLError(code)))
    }
    for code in [POSIXErrorCode.ENOSPC, .EACCES, .EIO] { errors.append(("call the system", POSIXError(code))) }
    errors.append(("something else", NSError(domain: NSCocoaErrorDomain, code: 4_097)))
    return errors
  }

  @Test("no failure shows the text of Foundation's errors, alone or as the cause of another error")
  func plainWords() throws {
    let folder = TemporaryFolder.url("failures")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    // A leftover folder does no harm.
    defer { try? FileManager.default.removeItem(at: folder) }
    for (what, error) in try provoked(in: folder) {
      let failures = [
        CommandFailure(error), CommandFailure(StoreError(.io, "the disk failed", cause: error)),
        CommandFailure(ServerError(.inputOutput, "the disk failed", cause: error)),
        CommandFailure(SyncError.store(error)),
      ]
      for failure in failures {
        for text in [failure.message, failure.next ?? ""] {
          for foreign in [
            "Error Domain=", "NSCocoaErrorDomain", "NSPOSIXErrorDomain", "NSURLErrorDomain", "UserInfo", "CocoaError",
            "POSIXError", "URLError(", "DecodingError", "EncodingError", "Context(", "couldn’t be",
            "could not be completed",
          ] {
            #expect(!text.contains(foreign), "\(what): \(text)")
          }
        }
        #expect(!failure.message.isEmpty && !failure.message.hasSuffix(": "), "\(what)")
      }
    }
  }

  @Test(
    "a failure of the system has its reason in the system's words, and what a person can do",
    arguments: [
      (POSIXErrorCode.ENOENT, CommandFailure.Kind.noInput, "check the path"),
      (.EACCES, .permission, "check who owns the folder and its files, and what that user may do with them"),
      (.ENOSPC, .io, "make room and try again"),
    ])
  func system(code: POSIXErrorCode, kind: CommandFailure.Kind, next: String) {
    let reason = String(cString: strerror(code.rawValue))
    let failure = CommandFailure(POSIXError(code))
    #expect(failure == CommandFailure(kind, reason, next: next))
    let inFile = CommandFailure(
      CocoaError(
        .fileReadUnknown, userInfo: [NSFilePathErrorKey: "/a/b", NSUnderlyingErrorKey: POSIXError(code)]))
    #expect(inFile == CommandFailure(kind, "/a/b: \(reason)", next: next))
  }
}
#endif
