"""People and organisations in scripts without capital letters, told by a title or the word behind or before."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from services.enricher.entities.names import Name, Names, Span
from shared.wire.enrichment import EntityKind

MOST = 100
"""So many finds of a pattern are looked at."""

_KOREAN_FAMILY = (
    "김이박최정강조윤장임한오서신권황안송류전홍고문양손배백허유남심노하곽성차주우구민진나지엄채원천방"
    "공현함변염여추도소석선설마길표명기반왕금옥육인맹제모탁국"
)
_KOREAN = re.compile(
    rf"(?<![가-힣])([{_KOREAN_FAMILY}][가-힣]{{2}}) ?(?=(?:전 |신임 |당시 )?(?:대통령|총리|장관|의원"
    rf"|대표|감독|교수|회장|위원장|사장|시장|지사|선수|기자"
    r"|후보|원장|총장|판사|검사|변호사|의장|부총리|차관|부장|본부장|이사|대변인|실장|작가|배우"
    r"|씨(?![가-힣])|씨[는가의를와]))"
)
_NO_KOREAN = re.compile(
    r".*[당부원회국청시도군구팀사관처실단련교행계장총측인자사]$|유망주|최고령|최연소|기대주|주지사|우리나|전문의|.*(?:신임|현직|차기|역대|해당|이번|전임|주요|여성|남성)$"
)
_KOREAN_BODY = re.compile(
    r"(?<![가-힣A-Za-z])([가-힣A-Z]{2,8}(?:대학교|은행|전자|그룹|증권|건설|항공|위원회|협회|재단"
    r"|연구원|연구소|병원|신문|방송|제약|바이오|경찰서|"
    r"소방서|지방법원|지법|지검|교육청|시청|도청|공사|공단|노조))(?![가-힣]{3})"
)
_NO_KOREAN_BODY = re.compile(
    r"(?:시중|중앙|국립|지방|인터넷|저축|투자|상업|종합|대형|국제|해당|각급|외국계|대기업|국내|글로벌"
    r"|주요|일부|관련|산하|공기업)"
    r"(?:대학교|은행|전자|그룹|증권|건설|항공|위원회|협회|재단|연구원|연구소|병원|신문|방송|제약"
    r"|바이오|공사|공단|노조)$|^(?:동물|대학|요양|응급|상급종합)"
)
_JAPANESE = re.compile(
    r"(?<![一-龥々])([一-龥々]{3,5}|[一-龥々]{1,3}[ぁ-ん]{2,3})(?=氏(?!名)|容疑者|被告|(?:前|元)?首相"
    r"|監督(?!官|署)|選手(?!権|村)|さん)"
    r"|(?<![ァ-ヺー])(?<![ァ-ヺー]{2}[・＝])([ァ-ヺー]{2,}+(?:[・＝][ァ-ヺー]{2,}+)++)(?=氏|容疑者|被告|選手|監督|首相|大統領|さん|外相"
    r"|国務長官|長官|CEO|最高経営責任者)"
    r"|(?<![ァ-ヺー])([ァ-ヺー]{3,}+)(?=氏|容疑者|被告|首相|大統領|外相)"
)
_NO_JAPANESE = re.compile(
    r"[国党府省庁官前元新現副代次各歴内政男女性員者配犯長人家社室課部局班校町村市県都区両同某故会軍隊職権系米英仏独露中韓朝]"
    r"|店|業|全員|選手|監督|学生|団体|関係"
)
_JAPANESE_BODY = re.compile(
    r"([一-龥々]{2,6}(?:大学(?!生|院生|側|入)|銀行|新聞社?|電力|製薬|建設|証券|県警|府警|道警|地裁"
    r"|高裁|地検|労組|信用金庫|商工会議所|医科大学))"
    r"|((?:株式会社)[ァ-ヺーA-Za-z一-龥]{2,12}|[ァ-ヺーA-Za-z]{2,14}株式会社)"
)
_NO_JAPANESE_BODY = re.compile(
    r"^(?:国立|私立|公立|県立|市立|同|各|両|全|地方|中央|主要|大手|民間|信託|投資|都市|取引|現地|有力"
    r"|国内|海外|海外の|政府系|地元|卒業|出身|入学|女子|短期)"
)
_TRANSCRIBED = (
    "阿埃艾安昂奥巴白拜班邦保堡鲍贝本比彼别宾波伯博布查察彻茨次措达戴丹德登邓迪蒂丁杜敦顿厄恩尔法凡菲"
    "费芬丰冯佛弗福夫富盖甘冈戈格葛根贡古瓜圭郭果哈海汉翰豪赫黑亨洪胡华怀惠霍基吉季加"
    "贾简杰津京喀卡凯坎康考科克肯孔库夸奎昆拉莱赖兰朗劳勒雷蕾黎李理丽莉利联列林琳龙卢鲁路吕伦罗洛马玛"
    "迈麦曼芒毛梅门蒙孟米密缪摩莫默姆穆拿那纳娜乃奈内尼涅宁纽农努诺欧帕派潘庞培佩彭皮匹平泼珀"
    "普齐契恰乔切钦琴丘热仁荣茹儒瑞若撒萨塞赛桑森沙尚绍舍申什圣施史士舒顺朔丝斯思松苏孙索塔泰坦汤唐陶"
    "特腾提铁汀廷通图土托瓦汪旺威韦维温沃乌武希锡夏香歇谢辛欣兴雄休逊雅亚扬耶伊易因英尤约赞泽曾扎詹章"
    "哲珍真芝治朱卓佐"
)
_CHINESE = re.compile(
    rf"([{_TRANSCRIBED}]{{2,6}}·[{_TRANSCRIBED}]{{2,6}}(?:·[{_TRANSCRIBED}]{{2,6}})?)"
    r"|(?:发言人|部长|外长|主席|总统|总理|市长|省长|书记|主任|教授|院士|总裁|董事长|首席执行官|教练"
    r"|局长|大使|记者|院长|副总理|行长)"
    r"((?:欧阳|司马|诸葛"
    r"|[王李张刘陈杨赵黄周吴徐孙胡朱高林何郭马罗梁宋郑谢韩唐冯于董萧程曹袁邓许傅沈曾彭吕苏卢蒋蔡贾丁魏薛叶阎余潘杜戴夏钟汪田任姜范方石姚谭廖邹熊金陆郝孔白崔康毛邱秦江史顾侯邵孟龙万段雷钱汤尹黎易常武乔贺赖龚文])"
    r"[一-龥]{1,2}?)(?=表示|说|称|指出|宣布|强调|认为|介绍|告诉|出席|会见|访问|在|、|，|。|和|与|主持|回应|率)"
)
_CHINESE_BODY = re.compile(
    r"(?<![一-龥])([一-龥]{2,6}(?:大学(?!生)|银行|集团|科技公司|股份有限公司|有限公司|证券交易所|日报"
    r"|晚报|委员会|研究院|法院|检察院|公安局|气象台))"
)
_NO_CHINESE_BODY = re.compile(
    r"[的在是了和与对被将为向从该某各多这那其及]|^(?:国有|商业|中央|民营|外资|投资|上市|一家|两家|大型|高校|重点)"
)
_ARABIC = re.compile(
    r"(?:الرئيس|رئيس الوزراء|الوزير|الأمير|الملك|الشيخ|الدكتور|اللاعب|المدرب|الفنان|الفنانة|النائب|المتحدث)"
    r" (?:ال\w+ (?:ال\w+ )?)?(?!ال)((?:محمد|أحمد|محمود|علي|حسن|حسين|عبد \w+|عبدالله|إبراهيم|خالد|عمر"
    r"|يوسف|مصطفى|فيصل|سلمان|تميم|جو|دونالد"
    r"|فلاديمير|إيمانويل|بنيامين|رجب|بشار|مسعود|عباس|سعد|نجيب|نبيه|جوزيف|ميشال|قيس|عبدالمجيد|عبدالفتاح"
    r"|كريم|هاكان|شي)(?: (?:بن |آل |أبو )?[^\W\d_]{3,}){1,2}?)"
    r"(?= |،|\.|:|$)"
)


_NEVER = re.compile(r"(?!)")
_PATTERNS: dict[str, tuple[tuple[re.Pattern[str], EntityKind, re.Pattern[str]], ...]] = {
    "ko": ((_KOREAN, "person", _NO_KOREAN), (_KOREAN_BODY, "organisation", _NO_KOREAN_BODY)),
    "ja": ((_JAPANESE, "person", _NO_JAPANESE), (_JAPANESE_BODY, "organisation", _NO_JAPANESE_BODY)),
    "zh": ((_CHINESE, "person", _NEVER), (_CHINESE_BODY, "organisation", _NO_CHINESE_BODY)),
    "ar": ((_ARABIC, "person", _NEVER),),
}


def find(text: str, language: str | None, names: Names) -> Iterator[Span]:
    """Yield the people and organisations that a title or a word behind or before tells, and that no list has."""
    for pattern, kind, refused in _PATTERNS.get(language or "", ()):
        for match in islice(pattern.finditer(text), MOST):
            group = match.lastindex or 0
            said = match[group]
            if said and not refused.search(said) and said not in names.others:
                yield Span(match.start(group), match.end(group), Name(kind, said))
