import Foundation
import KeepsakeInterchange
import TestSupport
import Testing

/// Real files of other programs. `KEEPSAKE_CORPUS` names the folder in which they are; without it these tests are
/// skipped.
enum Corpus {
  static func files(_ name: String) throws -> [URL] {
    let folder = try #require(RealFiles.folder).appending(path: name)
    return try FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil).sorted {
      $0.path < $1.path
    }
  }
}

struct CorpusTests {
  @Test(
    "every file that Python's plistlib reads is read as the same tree, also after writing it again", .needsRealFiles,
    arguments: ["nskeyed", "bplist_ok"])
  func agreesWithPlistlib(set: String) throws {
    let files = try Corpus.files(set)
    var (same, refusedByBoth, onlyOurs) = (0, 0, 0)
    for (file, answer) in zip(files, try Plistlib.read(files)) {
      do {
        let list = try PropertyList(Data(contentsOf: file))
        guard case .tree(let tree) = answer else {
          onlyOurs += 1
          continue
        }
        let ours = CanonicalTree.json(list)
        let isSame = ours == tree
        #expect(isSame, "\(file.lastPathComponent): \(Self.difference(ours, tree))")
        if isSame { same += 1 }
        // And again from the file that we write of it.
        let again = try CanonicalTree.json(PropertyList(list.encoded(as: .binary))) == ours
        #expect(again, "\(file.lastPathComponent) differs after it is written and read again")
      } catch let error as PropertyListError {
        if case .tree = answer { Issue.record("\(file.lastPathComponent): \(error)") } else { refusedByBoth += 1 }
      }
    }
    print(
      """
      \(set): \(files.count) files, \(same) read as plistlib reads them, \(onlyOurs) that plistlib refuses, \
      \(refusedByBoth) refused by both
      """)
    #expect(same > 0)
  }

  private static func difference(_ ours: String, _ theirs: String) -> String {
    let start = zip(ours.utf8, theirs.utf8).prefix { $0 == $1 }.count
    func around(_ text: String) -> String {
      String(decoding: Array(text.utf8).dropFirst(max(0, start - 40)).prefix(120), as: UTF8.self)
    }
    return "\(around(ours)) and not \(around(theirs))"
  }
}

extension CorpusTests {
  @Test("every keyed archive is converted to a tree with at least one top-level value", .needsRealFiles)
  func trees() throws {
    var (archives, objects, classes) = (0, 0, Set<String>())
    for file in try Corpus.files("nskeyed") {
      let tree = try KeyedArchive(Data(contentsOf: file)).tree()
      archives += 1
      objects += tree.objects.count
      classes.formUnion(tree.classes.map(\.name))
      #expect(!tree.top.isEmpty, "\(file.lastPathComponent)")
    }
    print(
      "nskeyed: \(archives) archives, \(objects) objects of \(classes.count) classes that aren't values of Foundation's"
    )
  }
}
