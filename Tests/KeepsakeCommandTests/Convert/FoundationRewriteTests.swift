#if Cloud && !canImport(Darwin)
import ArgumentParser
import Foundation
import KeepsakeInspection
import TestSupport
import Testing

@testable import KeepsakeCommand
@testable import KeepsakeInterchange

/// What Foundation's archiver writes on this platform is written again with exactly its fields, and read by its
/// unarchiver as the same.
@Suite struct FoundationRewriteTests: InspectsFiles {
  let folder = TemporaryFolder.url("rewrite")

  private func list(_ name: String) throws -> PropertyList {
    try PropertyList(Data(contentsOf: folder.appendingPathComponent(name)))
  }

  @discardableResult private func convert(_ input: String, _ output: String, _ options: String...) throws
    -> [PlainForm.Loss]
  {
    try ConvertCommand.parse([path(input), path(output), "--force"] + options).convert().losses
  }

  /// The sets of fields of an archive's objects, by class, each sorted.
  private static func fields(_ list: PropertyList) -> [String: Set<[String]>] {
    let objects = list["$objects"]?.array ?? []
    var found: [String: Set<[String]>] = [:]
    for object in objects {
      guard let name = KeyedClasses.name(of: object, in: objects)?.name else { continue }
      found[name, default: []].insert((object.dictionary ?? []).map(\.key).filter { $0 != "$class" }.sorted())
    }
    return found
  }

  /// What Foundation reads of an archive, and the error that it notes.
  private func read(_ list: PropertyList) throws -> (value: Any?, error: String?) {
    let unarchiver = try NSKeyedUnarchiver(forReadingFrom: list.encoded(as: .binary))
    unarchiver.requiresSecureCoding = false
    // Without this, a failure ends the process.
    unarchiver.decodingFailurePolicy = .setErrorAndReturn
    let value = unarchiver.decodeObject(forKey: NSKeyedArchiveRootObjectKey)
    return (value, unarchiver.error.map { "\($0)" })
  }

  @Test(
    "what Foundation archives comes back from JSON with exactly its fields, and Foundation reads it as the same",
    arguments: FoundationSample.all)
  func throughJSON(sample: FoundationSample) async throws {
    try await cleaning {
      let value = try sample.make()
      // Alone, and referred to twice.
      for root in [value, NSDictionary(dictionary: ["one": value, "two": value])] {
        let original = try FoundationSample.archived(root)
        try write(original.encoded(as: .binary), "a.archive")
        #expect(try convert("a.archive", "a.json").isEmpty)
        #expect(try convert("a.json", "b.archive").isEmpty)
        let again = try list("b.archive")
        #expect(Self.fields(again) == Self.fields(original))
        #expect(try KeyedFidelity.losses(from: original, to: again, as: .objects).isEmpty)
        #expect(try KeyedFidelity.losses(from: again, to: original, as: .objects).isEmpty)
        let (ours, error) = try read(again)
        let (theirs, expected) = try read(original)
        #expect(error == expected)
        if root === value, sample.hasEquality { #expect(value.isEqual(ours), "\(String(describing: ours))") }
        // Of what it doesn't read of its own, either, nothing more can be asked: an attributed text with one run.
        guard expected == nil else { continue }
        let (one, other) = try (#require(ours), #require(theirs))
        if root === value {
          let losses = try KeyedFidelity.losses(
            from: FoundationSample.archived(other), to: FoundationSample.archived(one), as: .objects)
          #expect(losses.isEmpty)
        } else if sample.hasEquality {
          #expect((other as? NSObject)?.isEqual(one) == true, "\(one)")
        }
      }
    }
  }

  /// The sets of fields that a class has in what Foundation archives.
  private static func known() throws -> [String: Set<[String]>] {
    var known = FoundationSample.fieldsOfUnwritten.mapValues { Set([$0.sorted()]) }
    for sample in FoundationSample.all {
      for (name, sets) in try fields(FoundationSample.archived(sample.make())) {
        known[name, default: []].formUnion(sets)
      }
    }
    return known
  }

  @Test("what an archive keeps of Foundation's objects is written with fields that Foundation's objects have")
  func throughArchive() async throws {
    try await cleaning {
      let known = try Self.known()
      for sample in FoundationSample.all {
        let value = try sample.make()
        for root in [value, NSDictionary(dictionary: ["one": value, "two": value])] {
          try write(FoundationSample.archived(root).encoded(as: .binary), "a.archive")
          let losses = try convert("a.archive", "a.keepsake", "--lossy")
          try convert("a.keepsake", "b.archive")
          let again = try list("b.archive")
          for (name, sets) in Self.fields(again) {
            let unknown = sets.subtracting(known[name] ?? [])
            #expect(unknown.isEmpty, "\(sample.name): \(name) with \(unknown)")
          }
          let (ours, error) = try read(again)
          // A null alone is nil.
          #expect((ours != nil || root is NSNull) && error == nil, "\(sample.name): \(error ?? "")")
          if losses.isEmpty, root === value { #expect(value.isEqual(ours), "\(sample.name)") }
        }
      }
    }
  }

  @Test("every class that the library knows is among what Foundation archives, or is known not to be archived")
  func complete() throws {
    let classes = try Set(FoundationSample.all.flatMap { try Self.fields(FoundationSample.archived($0.make())).keys })
    let known = Set(FoundationClass.all.flatMap(\.names))
    #expect(known.subtracting(classes) == Set(FoundationSample.unwritten.keys))
    let written = try Set(Self.known().keys)
    #expect(Set(FoundationClass.written.map(\.name)).isSubset(of: written))
    #expect(Set(FoundationSample.unarchivable).isDisjoint(with: known.union(classes)))
  }

  /// Each value of JSON or of a property list that one of Foundation's classes is written for.
  private static var written: [(text: String, value: NSObject, name: String)] {
    let uuid = UUID()
    return [
      (#"[1, "a"]"#, NSArray(array: [1, "a"]), "NSArray"),
      (#"{"a": 1}"#, NSDictionary(dictionary: ["a": 1]), "NSDictionary"),
      ("[null]", NSArray(array: [NSNull()]), "NSNull"), (#""$null""#, NSString(string: "$null"), "NSString"),
      (tagged(#"{"$set": [1]}"#), NSSet(array: [1]), "NSSet"),
      (tagged(#"{"$date": 0.5}"#), NSDate(timeIntervalSinceReferenceDate: 0.5), "NSDate"),
      (tagged(#"{"$data": "AQID"}"#), NSMutableData(data: Data([1, 2, 3])), "NSMutableData"),
      (tagged("{\"$uuid\": \"\(uuid)\"}"), uuid as NSUUID, "NSUUID"),
      (tagged(#"{"$url": "file:///a"}"#), NSURL(fileURLWithPath: "/a"), "NSURL"),
      (tagged(#"{"$decimal": "-12.5"}"#), NSDecimalNumber(string: "-12.5"), "NSDecimalNumber"),
    ]
  }

  private static func tagged(_ value: String) -> String { #"{"$keepsake": "values 1", "value": \#(value)}"# }

  /// Foundation's classes that it doesn't read on this platform, with the reason.
  private static let unread = ["NSDecimalNumber": "it looks for the digits in an object, where no archiver writes them"]

  @Test("each class of Foundation's that values are written as has its fields, and Foundation reads it")
  func values() async throws {
    try await cleaning {
      let known = try Self.known()
      #expect(Set(Self.written.map(\.name)) == Set(FoundationClass.written.map(\.name)))
      for (text, value, name) in Self.written {
        try write(Data(text.utf8), "a.json")
        #expect(try convert("a.json", "b.archive").isEmpty)
        let again = try list("b.archive")
        let sets = Self.fields(again)
        #expect(sets[name] != nil, "\(sets)")
        for (name, found) in sets { #expect(found.isSubset(of: known[name] ?? []), "\(name) with \(found)") }
        let (ours, error) = try read(again)
        if let reason = Self.unread[name] {
          #expect(ours == nil && error != nil, "\(name) is read now, but was said not to be: \(reason)")
        } else {
          #expect(value.isEqual(ours) && error == nil, "\(name): \(String(describing: ours)) \(error ?? "")")
        }
      }
    }
  }
}
#endif
